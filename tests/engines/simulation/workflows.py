"""The random workflows of the core's simulator, under the names children are called by."""

from functools import lru_cache
from random import Random
from typing import Any

from tests.engines.simulation.nodes import CHILDREN
from tests.simulator.workflows import KINDS, KINDS_OF_CHILDREN, PLANS_SHARED_BY, document, with_closing

OTHER_WORKSPACE = "other"
POOL = "gpu"
TOPS = ("top-0", "top-1", "top-2")
KEYS = ("only one", "{{ input.key }}")


def documents_of(seed: int) -> list[dict[str, Any]]:
    """What a history executes, children first; neighbouring seeds share theirs."""
    return _documents(seed // PLANS_SHARED_BY)


@lru_cache(maxsize=2)
def _documents(seed: int) -> list[dict[str, Any]]:
    chance, closing = Random(f"documents {seed}"), Random(f"closing documents {seed}")
    children = [_named(chance, name, document(chance, KINDS_OF_CHILDREN, largest=3)) for name in CHILDREN]
    tops = [_named(chance, name, document(chance, KINDS, largest=6)) for name in TOPS]
    return _closed(closing, children, tops)


def _closed(chance: Random, children: list[dict[str, Any]], tops: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        *(with_closing(chance, each, KINDS_OF_CHILDREN) for each in children),
        *(with_closing(chance, each, KINDS) for each in tops),
    ]


# Fleets


def fleet_documents_of(seed: int) -> list[dict[str, Any]]:
    """The same for a fleet, with what only a fleet has: pools, wide graphs, results used again, keys of families."""
    return _fleet_documents(seed // PLANS_SHARED_BY)


@lru_cache(maxsize=2)
def _fleet_documents(seed: int) -> list[dict[str, Any]]:
    chance = Random(f"fleet documents {seed}")
    children = [document(chance, KINDS_OF_CHILDREN, largest=3) for _ in CHILDREN]
    tops = [document(chance, KINDS, largest=5) for _ in TOPS[1:]]
    made_all = _closed(Random(f"closing fleet {seed}"), children, [*tops, _wide(chance)])
    named = zip((*CHILDREN, *TOPS), made_all, strict=True)
    return [{**_shared(chance, made), "name": name, **_key(chance)} for name, made in named]


def _key(chance: Random) -> dict[str, str]:
    """Some children have the keys of their parents, and some those of strangers."""
    return {"concurrencyKey": chance.choice(KEYS)} if chance.random() < 0.4 else {}


def _shared(chance: Random, made: dict[str, Any]) -> dict[str, Any]:
    return {**made, "nodes": [{**node, **_fleet_fields(chance, node["type"])} for node in made["nodes"]]}


def _fleet_fields(chance: Random, kind: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if chance.random() < 0.15:
        fields["pool"] = POOL
    if kind in ("task", "call") and chance.random() < 0.15:
        fields["cache"] = {"ttl": chance.choice((1, 60))}
    return fields


def _wide(chance: Random) -> dict[str, Any]:
    """More to do at once than a small worker has hands."""
    count = chance.randint(3, 6)
    nodes: list[dict[str, Any]] = [{"id": f"n{i}", "type": "task"} for i in range(count)]
    nodes[0] |= {"forEach": "{{ input.items }}", "with": {"it": "{{ item }}"}}
    return {"ropewalk": 1, "nodes": nodes, "edges": []}


def _named(chance: Random, name: str, made: dict[str, Any]) -> dict[str, Any]:
    key = {"concurrencyKey": f"{name.split('-')[0]} {chance.choice(KEYS)}"} if chance.random() < 0.4 else {}
    return {**made, "name": name, **key}
