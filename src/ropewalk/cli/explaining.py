"""Why an execution is not running: a pure answer from its picture and a few facts around it."""

from typing import Any

from msgspec import Struct

from ropewalk.cli.rendering.text import lapse, one_line
from ropewalk.cli.rendering.timeline import waits_for

Json = dict[str, Any]


class Facts(Struct, frozen=True):
    """What the log of the execution itself does not say."""

    now: int
    owner: int | None = None
    paused_by: str | None = None
    key_holder: str | None = None
    max_parallel: int | None = None
    letters: dict[str, str] = {}


def explanation(picture: Json, facts: Facts) -> Json:
    """State, what the whole waits for, and the reason and remedy of every node that is not done."""
    nodes = [_node(picture, node, facts) for node in picture["nodes"] if _is_open(node)]
    return {
        "id": picture["id"],
        "workflow": picture["workflow"],
        "state": picture["state"],
        "waitingFor": picture["waitingFor"],
        "reasons": list(_reasons(picture, facts)),
        "nodes": nodes,
    }


def _is_open(node: Json) -> bool:
    return node["state"] not in ("SUCCESS", "SKIPPED", "CANCELLED")


def _reasons(picture: Json, facts: Facts) -> list[Json]:
    name, state = picture["id"], picture["state"]
    if picture["finishedAt"] is not None:
        again = {"FAILED": f"retry {name}", "TIMEOUT": f"retry {name}"}.get(state, f"replay {name}")
        return [_reason(f"it ended {state} {lapse(facts.now - picture['finishedAt'])} ago", again)]
    if state == "PAUSED":
        return [_reason(f"it was paused by {one_line(facts.paused_by or 'someone')}", f"resume {name}")]
    reasons = []
    if facts.owner is None:
        reasons.append(_reason("no process executes on this store", f"resume {name}"))
    if facts.key_holder is not None:
        reasons.append(_reason(f"its concurrency key is held by execution {facts.key_holder}"))
    if picture["waitingFor"] == "capacity" and facts.key_holder is None:
        reasons.append(_reason("it waits for a slot of its workspace"))
    return reasons


def _reason(why: str, command: str | None = None) -> Json:
    return {"why": why, "command": command}


def _node(picture: Json, node: Json, facts: Facts) -> Json:
    why, command = _why(picture, node, facts)
    return {"id": node["id"], "state": node["state"], "why": why, "command": command}


def _why(picture: Json, node: Json, facts: Facts) -> tuple[str, str | None]:
    match node["state"]:
        case "FAILED":
            letter = facts.letters.get(node["id"])
            message = one_line(node["error"] or "", 160)
            return f"failed: {message}", None if letter is None else f"dlq requeue {letter}"
        case "BLOCKED" | "WAITING":
            return f"behind {', '.join(node['behind'][:5])}{' …' if len(node['behind']) > 5 else ''}", None
        case "READY":
            return _ready(picture, facts), None
        case _:
            return _under_way(picture, node, facts)


def _ready(picture: Json, facts: Facts) -> str:
    if picture["state"] == "PAUSED":
        return "ready; held by the pause"
    running = sum(node["state"] == "RUNNING" for node in picture["nodes"])
    if facts.max_parallel is not None and running >= facts.max_parallel:
        return f"ready; maxParallel {facts.max_parallel} is reached"
    if facts.owner is None:
        return "ready; nobody executes"
    return "ready; waits for a slot or a free hand"


def _under_way(picture: Json, node: Json, facts: Facts) -> tuple[str, str | None]:
    wait = node["wait"]
    if wait is not None:
        return waits_for(wait, node["dueAt"], facts.now), _answer(picture["id"], node["id"], wait)
    if node["items"] is not None:
        items = node["items"]
        return f"{items['done']} of {items['total']} items done, {items['failed']} failed", None
    if node["phase"] == "BACKOFF":
        error = one_line(node["error"] or "", 120)
        return f"attempt {node['attempts']} failed, retry in {lapse((node['dueAt'] or 0) - facts.now)}: {error}", None
    if facts.owner is None:
        return f"attempt {node['attempts']} was under way when its process ended; it will be made again", None
    return f"attempt {node['attempts']} is running, for {lapse(facts.now - (node['startedAt'] or facts.now))}", None


def _answer(execution: str, node: str, wait: Json) -> str | None:
    match wait["for"]:
        case "approval":
            return f"approve {execution} {node}"
        case "signal":
            return f"signal {execution} {one_line(wait['name'])}"
        case "child":
            return f"explain {wait['child']}"
        case _:
            return None
