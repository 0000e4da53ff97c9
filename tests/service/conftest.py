"""The service on an engine, judged when the test is done with it."""

from tests.engines.conftest import shared_world, world

alone = world
"""For those who have another in mind by that name."""

__all__ = ["alone", "shared_world", "world"]
