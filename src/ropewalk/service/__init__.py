"""The verbs the outside may use, and what it may read."""

from ropewalk.service.verbs import Service

__all__ = ["Service"]
