"""How far the closing of an execution has come (`finally`, `compensate`), and why its nodes stand where they do."""

from ropewalk.core.instant import moment
from ropewalk.core.state import NodeState
from ropewalk.service.facts import Facts
from ropewalk.service.reasons import FEW, Cause, Reason, clock, count, few

_LEFT = (NodeState.READY, NodeState.RUNNING)


def closing(f: Facts) -> list[Reason]:
    """That the outcome is decided, and by what the execution is yet to be closed; nothing if it is not so far."""
    decided, plan = f.x.closing, f.story.plan
    if decided is None:
        return []
    left = [name for name in decided.nodes if f.x.nodes[plan.index[name]] in _LEFT]
    until = "" if decided.until is None else f", until {clock(decided.until, f.now)} at the latest"
    details = {"outcome": str(decided.outcome), "nodes": left[:FEW], "until": moment(decided.until)}
    why = f"its outcome is {decided.outcome}, and {count(len(left), 'node')} are yet to close it{until}: {few(left)}"
    return [Reason(Cause.CLOSING, why, details)]


def undone(f: Facts) -> tuple[str, ...]:
    """The nodes that an execution which is over has undone: it is not reopened then."""
    return () if f.x.closing is None else f.x.closing.undone


def not_yet(f: Facts, index: int) -> Reason | None:
    """Why a node that closes the execution waits; None if it is no such node, or does not wait for that."""
    if index < f.story.plan.ordinary:
        return None
    if f.x.node_state(index) is NodeState.READY:
        return Reason(Cause.CLOSING, "ready; the nodes that close an execution run one after the other")
    return Reason(Cause.CLOSING, "runs when all other nodes have ended, if it is needed then")
