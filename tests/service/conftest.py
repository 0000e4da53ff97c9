"""The service on an embedded engine, judged when the test is done with it."""

from tests.engines.conftest import world

__all__ = ["world"]
