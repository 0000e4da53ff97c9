"""What expressions of an execution see."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from ropewalk.core.brief import is_brief
from ropewalk.core.errors import RopewalkError, Unfinished
from ropewalk.core.events import (
    NAMES_WORKFLOW,
    TELLS_CHILD,
    TELLS_ERRORS,
    Blob,
    ExecutionAccepted,
    OutcomeDecided,
)
from ropewalk.core.execution.progress import Progress
from ropewalk.core.execution.work import NodeError, Work
from ropewalk.core.expression import Scope, Template
from ropewalk.core.expression.chance import Chance
from ropewalk.core.expression.run import BRIEF_STEPS
from ropewalk.core.instant import rfc3339
from ropewalk.core.reach import BoundedScope
from ropewalk.core.state import NodeState


class TooMuch(RopewalkError):
    """An expression looks at more large values than are held in memory at once."""


MOST_BRIEF_STEPS: Final = 50_000
"""How many steps of brief evaluations an execution may take before its worker says that it may take as many again."""


class NodesView(Mapping[str, Any]):
    """`nodes`: each node's output, state and errors, looked up only when asked for.

    What was mended in maps after so many changes (`as_of`; None: by now) is not seen.
    """

    __slots__ = ("_as_of", "_progress")

    def __init__(self, progress: Progress, as_of: int | None = None) -> None:
        self._progress = progress
        self._as_of = as_of

    def __getitem__(self, node: str) -> dict[str, Any]:
        x = self._progress
        index = x.plan.index[node]
        record: dict[str, Any] = {
            "output": _handed_on(x, index, self._as_of),
            "state": str(x.node_state(index)),
            "error": None,
        }
        if x.place is not None:
            return record  # where nothing has failed, and nothing is repeated
        if index in x.plan.repeats:
            record["rounds"] = x.rounds.get(index, 0) + (x.nodes[index] is NodeState.SUCCESS)
        if index in x.errors:
            record["error"] = error_record(x.errors[index], rules_of(x))
        if index in x.maps:
            map_ = x.maps[index]
            errors = map_.errors if self._as_of is None else map_.errors_at(self._as_of)
            record["errors"] = [error_record(each, rules_of(x)) for each in errors.values()]
        return record

    def __iter__(self) -> Iterator[str]:
        return iter(self._progress.plan.ids)

    def __len__(self) -> int:
        return len(self._progress.plan.ids)


def _handed_on(x: Progress, node: int, as_of: int | None = None) -> Any:
    """What the node handed on, large or small; None if nothing."""
    output = x.outputs.get(node)
    if type(output) is Blob:
        return _loaded(x, output)
    if output is not None and x.plan.has_maps and node in x.maps:
        output = x.maps[node].hand_out(as_of)
    if output is not None and x.plan.has_maps and node in x.large_lists:
        return [_loaded(x, each) if type(each) is Blob else each for each in output]
    return output


def _loaded(x: Progress, blob: Blob) -> Any:
    try:
        return x.blobs[blob.hash]
    except KeyError:
        raise Unfinished from None  # the worker loads it first


def rules_of(x: Progress) -> int:
    """The rules the execution follows."""
    return 0 if x.accepted is None else x.accepted.rules


def error_record(error: NodeError, rules: int) -> dict[str, Any]:
    """A failure as expressions see it; of an item of a map without its detail and body."""
    record: dict[str, Any] = {"type": str(error.type), "message": error.message, "attempts": error.attempts}
    if rules >= TELLS_ERRORS:
        record["status"] = error.status
        record |= {"detail": error.detail, "body": error.body} if error.index is None else {}
    if rules >= TELLS_CHILD and error.index is None:
        record["child"] = None if error.child is None else str(error.child)
    return record if error.index is None else {**record, "index": error.index}


def scope(x: Progress, item: Any = None, index: int | None = None, as_of: int | None = None) -> Scope:
    """The names an expression of this execution may use; `as_of` is for `NodesView`."""
    accepted = x.accepted
    assert accepted is not None, "an execution is accepted before anything is evaluated"
    if accepted.bounded_by:
        return BoundedScope(
            accepted.bounded_by,
            input=accepted.input,
            vars=accepted.vars,
            nodes=NodesView(x, as_of),
            item=item,
            index=index,
            execution=x.about or about(x, accepted),
        )
    return Scope(
        input=accepted.input,
        vars=accepted.vars,
        nodes=NodesView(x, as_of),
        item=item,
        index=index,
        execution=x.about or about(x, accepted),
        workspace=accepted.workspace,
        env=accepted.env,
    )


def about(x: Progress, accepted: ExecutionAccepted) -> dict[str, Any]:
    """What `execution` means, made once."""
    known: dict[str, Any] = {
        "id": accepted.execution,
        "startedAt": None if x.started_at is None else rfc3339(x.started_at),
    }
    if accepted.rules >= NAMES_WORKFLOW:
        known["workflow"] = x.plan.definition.document.get("name")
    if x.closing is not None:
        known |= _about_the_end(x, x.closing)
    x.about = known
    return known


def _about_the_end(x: Progress, decided: OutcomeDecided) -> dict[str, Any]:
    """What the nodes that close an execution see of its outcome: why, and which failures nothing has handled."""
    failed = [{"node": x.plan.ids[node], "error": error_record(x.errors[node], rules_of(x))} for node in x.unhandled]
    return {"outcome": str(decided.outcome), "error": decided.error, "failed": failed}


def output_of(x: Progress) -> Any:
    """The `output` expression, else the outputs of the successful sinks by id; Unfinished if that takes long, or is
    made of large values that are not in memory.

    What it gives fits into the log: a large output is evaluated, written and kept elsewhere.
    """
    output = _of_sinks(x) if x.plan.output is None else x.plan.output.resolve_briefly(scope(x))
    if not is_brief(output):
        raise Unfinished
    return output


def _of_sinks(x: Progress) -> dict[str, Any]:
    ids, outputs = x.plan.ids, x.outputs
    return {ids[sink]: _handed_on(x, sink) for sink in x.plan.sinks if sink in outputs}


def blobs_of(output: Any) -> list[Blob]:
    """The blobs a node's output is made of: itself, or those of a map's items."""
    if isinstance(output, Blob):
        return [output]
    return [each for each in output if isinstance(each, Blob)] if isinstance(output, list) else []


def items_of(x: Progress, node: int) -> Any:
    """What a map's `forEach` evaluates to."""
    template = x.plan.for_each[node]
    assert template is not None, "only a map has items"
    return template.resolve(_scope_of_list(x, node, template))


def _scope_of_list(x: Progress, node: int, template: Template) -> Scope:
    """What a map's list is made of stands from its first evaluation on: its items have their numbers from that."""
    first = x.maps[node] if node in x.maps else x.works[node]
    around = scope(x, as_of=first.as_of)
    if template.is_timely:
        around.chance = _chance(x, node, None, first.first_at)
    return around


def _scope_of_inputs(x: Progress, work: Work, item: Any, template: Template) -> Scope:
    place = work.round if work.node in x.plan.repeats else work.item
    around = scope(x, item, place, work.as_of)
    if template.is_timely:
        around.chance = _chance(x, work.node, place, work.first_at)
    if work.last is not None and any(path[0] == "last" for path in template.references):
        around.last = value_at_hand(x, work.last)
    return around


def value_at_hand(x: Progress, value: Any) -> Any:
    """The value, or that of the blob it is; Unfinished if the worker has to load it first."""
    return _loaded(x, value) if type(value) is Blob else value


def _chance(x: Progress, node: int, item: int | None, at: int) -> Chance:
    assert x.accepted is not None, "an execution is accepted before anything is evaluated"
    return chance_of(x.accepted.execution, x.plan.ids[node], item, at)


def chance_of(execution: str, node: str, item: int | None, at: int) -> Chance:
    """What a node draws from that first started then; an item of a map (None: the list itself) has its own."""
    return Chance(at, f"{execution} {node} {'' if item is None else item}")


def items_briefly(x: Progress, node: int) -> Any:
    """The same; Unfinished if it takes long."""
    template = x.plan.for_each[node]
    assert template is not None, "only a map has items"
    return template.resolve_briefly(_scope_of_list(x, node, template))


def inputs_of(x: Progress, work: Work, item: Any = None) -> Any:
    """The node's `with`, resolved: evaluated once, then as recorded; a requeue's overrides replace keys."""
    if work.inputs is not None:
        return _loaded(x, work.inputs) if type(work.inputs) is Blob else work.inputs
    template = x.plan.with_template(work.node)
    resolved = template.value if template.is_constant else template.resolve(_scope_of_inputs(x, work, item, template))
    return {**resolved, **work.overrides} if work.overrides else resolved


def inputs_briefly(x: Progress, work: Work, item: Any = None) -> Any:
    """The same; Unfinished if it takes long, or if `steps` says that the execution has evaluated much already."""
    if work.inputs is not None:
        return _loaded(x, work.inputs) if type(work.inputs) is Blob else work.inputs
    template = x.plan.with_template(work.node)
    if template.is_constant:
        resolved = template.value
    else:
        if x.steps > MOST_BRIEF_STEPS:
            raise Unfinished
        around = _scope_of_inputs(x, work, item, template)
        resolved = template.resolve_briefly(around)
        x.steps += BRIEF_STEPS - around.steps
    return {**resolved, **work.overrides} if work.overrides else resolved


Later = Callable[[], Any]
"""An evaluation of an execution as it is now, for another thread: what happens to the execution does not reach it."""


def inputs_later(x: Progress, work: Work, item: Any = None) -> Later:
    """The node's `with`, to be evaluated elsewhere."""
    template = x.plan.with_template(work.node)
    resolve = _later(template, _scope_of_inputs(x, work, item, template))
    overrides = work.overrides
    return (lambda: {**resolve(), **overrides}) if overrides else resolve


def items_later(x: Progress, node: int) -> Later:
    """What a map's `forEach` evaluates to, to be evaluated elsewhere."""
    template = x.plan.for_each[node]
    assert template is not None, "only a map has items"
    return _later(template, _scope_of_list(x, node, template))


def output_later(x: Progress) -> Later:
    """The execution's output, to be evaluated elsewhere."""
    if x.plan.output is not None:
        return _later(x.plan.output, scope(x))
    made = _of_sinks(x)
    return lambda: made


def _later(template: Template, around: Scope) -> Later:
    named = dict.fromkeys(path[1] for path in template.references if path[0] == "nodes")
    around.nodes = {node: around.nodes.get(node) for node in named}
    return partial(template.resolve, around)
