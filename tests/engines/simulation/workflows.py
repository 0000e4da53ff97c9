"""The random workflows of the core's simulator, under the names children are called by."""

from functools import lru_cache
from random import Random
from typing import Any

from tests.engines.simulation.nodes import CHILDREN
from tests.simulator.workflows import KINDS, KINDS_OF_CHILDREN, PLANS_SHARED_BY, document

TOPS = ("top-0", "top-1", "top-2")
KEYS = ("only one", "{{ input.key }}")


def documents_of(seed: int) -> list[dict[str, Any]]:
    """What a history executes, children first; neighbouring seeds share theirs."""
    return _documents(seed // PLANS_SHARED_BY)


@lru_cache(maxsize=2)
def _documents(seed: int) -> list[dict[str, Any]]:
    chance = Random(f"documents {seed}")
    children = [_named(chance, name, document(chance, KINDS_OF_CHILDREN, largest=3)) for name in CHILDREN]
    return children + [_named(chance, name, document(chance, KINDS, largest=6)) for name in TOPS]


def _named(chance: Random, name: str, made: dict[str, Any]) -> dict[str, Any]:
    key = {"concurrencyKey": f"{name.split('-')[0]} {chance.choice(KEYS)}"} if chance.random() < 0.4 else {}
    return {**made, "name": name, **key}
