"""Stubs: what is done in place of a node type's own work. Definitions and inputs are held to the real type."""

import inspect
from copy import deepcopy
from difflib import get_close_matches
from typing import Any

from ropewalk.core.definition.node_type import ARRIVED_PORT
from ropewalk.core.errors import NotFound
from ropewalk.core.waits import Wait
from ropewalk.nodes.base import NodeContext, NodeFailure, NodeType, Output, Registry


class Stub(NodeType):
    """A node type that gives one outcome after the other, the last of them again and again."""

    def __init__(self, real: NodeType, outcomes: tuple[Any, ...]) -> None:
        self.name = real.name
        self.calls: list[dict[str, Any]] = []
        self._real = real
        self._outcomes = outcomes

    def accept(self, inputs: Any) -> Any:
        """The inputs as they are, if the real type takes them."""
        self._real.accept(inputs)
        return inputs

    def wrong_ports(self, parameters: Any, taken: Any) -> str | None:
        return self._real.wrong_ports(parameters, taken)

    async def run(self, parameters: Any, context: NodeContext) -> Output | Wait:
        self.calls.append(deepcopy(parameters))
        outcome = self._outcomes[min(len(self.calls), len(self._outcomes)) - 1]
        return self._answer(parameters, await _given(outcome, parameters, context))

    def _answer(self, parameters: Any, given: Any) -> Output | Wait:
        if isinstance(given, Wait):
            return given
        real = self._real
        is_plain_wait = real.is_wait and not real.ports
        answer = given if isinstance(given, Output) else Output(given, (ARRIVED_PORT,) if is_plain_wait else ())
        if real.takes_one_port and (wrong := real.wrong_ports(parameters, answer.ports)):
            raise NodeFailure.permanent(f"the stub of {self.name}: {wrong}; return ropewalk.Output(value, (port,))")
        return answer


class Stubs:
    """The stubs of one engine, by the names of the types they stand for."""

    def __init__(self, types: Registry) -> None:
        self._types = types
        self._stubs: dict[str, Stub] = {}
        types.for_runs = self._for_runs

    def _for_runs(self, name: str) -> NodeType | None:
        return self._stubs.get(name) or self._types.get(name)

    def put(self, node_type: str | NodeType, outcomes: tuple[Any, ...]) -> None:
        """From now on the outcomes are what nodes of this type give; NotFound if there is no such type."""
        real = self._real(node_type)
        self._stubs[real.name] = Stub(real, outcomes)

    def _real(self, node_type: str | NodeType) -> NodeType:
        name = node_type if isinstance(node_type, str) else node_type.name
        found = self._types.get(name)
        if found is None and isinstance(node_type, NodeType):
            self._types.register(node_type)
            return node_type
        if found is None:
            raise NotFound(f"there is no node type {name!r} to stub{self._meant(name)}")
        if isinstance(node_type, NodeType) and found is not node_type:
            raise ValueError(f"two different node types are named {name!r}; rename one of them")
        return found

    def _meant(self, name: str) -> str:
        close = get_close_matches(name, list(self._types.infos()))
        guess = f": did you mean {' or '.join(close)}?" if close else "."
        return f"{guess} A function of your own is stubbed as itself, like stub(send_invoice, …), or named in nodes"

    def calls(self, node_type: str | NodeType) -> list[dict[str, Any]]:
        """The inputs of every attempt that the stub of this type carried out, in order."""
        name = node_type if isinstance(node_type, str) else node_type.name
        if name not in self._stubs:
            known = ", ".join(self._stubs) or "no type"
            raise NotFound(f"{name!r} is not stubbed, so its calls are not listed ({known} is): stub it first")
        return list(self._stubs[name].calls)


async def _given(outcome: Any, inputs: Any, context: NodeContext) -> Any:
    """What one outcome gives for these inputs: a value as it is, a function's result; an exception is raised."""
    if isinstance(outcome, BaseException) or (isinstance(outcome, type) and issubclass(outcome, BaseException)):
        raise outcome
    if isinstance(outcome, NodeType):
        return await outcome.run(outcome.accept(inputs), context)
    if not callable(outcome):
        return deepcopy(outcome)
    given = outcome(inputs, context) if _takes_context(outcome) else outcome(inputs)
    return await given if inspect.isawaitable(given) else given


def _takes_context(function: Any) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return False  # some built-in functions do not tell
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.kind in kinds and each.default is each.empty for each in parameters) > 1
