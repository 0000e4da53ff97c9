"""The service on an engine, judged when the test is done with it."""

from tests.engines.conftest import shared_world, world

__all__ = ["shared_world", "world"]
