"""Python functions as node types: parameters and result by their type hints."""

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Never,
    NoReturn,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from ropewalk.core.waits import Wait
from ropewalk.nodes.base import NodeContext, NodeFailure, NodeType, Output, Placement
from ropewalk.nodes.failure import describe
from ropewalk.nodes.functions import Function, as_function
from ropewalk.nodes.limits import Limits
from ropewalk.nodes.work import Place

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

P = ParamSpec("P")
R = TypeVar("R")
PLAIN_TYPES = (dict, list, str, int, float, bool, NoneType)
JSON_TYPES = (str, int, bool, NoneType)
Answer = Output | Wait


class FunctionNode(NodeType, Generic[P, R]):
    """A node type made of a function, which can still be called as one."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        summary: str | None = None,
        ports: tuple[str, ...] = (),
        placement: Place | None = None,
        limits: Limits | Mapping[str, Any] | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        _require_function(function, name)
        self.function = function
        self._work = as_function(function, name, placement, limits)
        self.name = self._work.name
        self.summary = summary if summary is not None else _first_line(function)
        self.ports = ports
        self.placement = self._work.placement
        # What a workflow built in Python says about nodes of this type unless told otherwise: retry, timeout, pool …;
        # the retry holds for nodes in other documents too.
        self.defaults = dict(defaults or {})
        hints = _hints(self._work)
        self._context_name = _context_name(hints)
        if self._context_name and self.placement is Placement.PROCESS:
            raise TypeError(f"{self.name}: the context cannot go to another process")
        # A function asks its context for credentials, by any slot and of any type.
        self.credentials = {"*": ()} if self._context_name else {}
        self._names = _parameter_names(self._work, self._context_name)
        self.Parameters = _model(self._work, self._names, hints) if self._names else None
        # What is simply awaited: an async function that takes nothing.
        is_bare = self.placement is Placement.LOOP and not (self._names or self._context_name)
        self._bare: Callable[[], Any] | None = self._work.call if is_bare else None
        self._returns = hints.get("return", Any)
        # A result of exactly the hinted plain type needs no converting.
        self._plain_type = self._returns if self._returns in PLAIN_TYPES else None
        if self._plain_type is None:
            # What has no form in JSON is refused here, where its author sees it.
            _ = self._result
        # And one that fits a hint of nothing but text, whole numbers, flags and null is JSON as it is.
        self._is_json = _is_json(self._returns)

    @cached_property
    def _result(self) -> "TypeAdapter[Any] | None":
        return _adapter(self._returns, self.name)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    async def run(self, parameters: Any, context: NodeContext) -> Answer:
        """Calls the function where it belongs and hands on what it returns, as its hint says."""
        bare = self._bare
        if bare is not None:
            return self._answer(await bare())
        if self.placement is Placement.LOOP:
            # As the facilities would, without their share of the price of every node.
            return self._answer(await self._work.call(**self._arguments(parameters, context)))
        if self.placement is Placement.PROCESS:
            # Only JSON goes to another process; `call_with` makes models of it again there.
            arguments = parameters.model_dump(mode="json", by_alias=True) if self._names else {}
        else:
            arguments = self._arguments(parameters, context)
        returned = await context.carry_out(self._work, arguments)
        if type(returned) not in PLAIN_TYPES and inspect.isawaitable(returned):
            returned = await returned  # an async function behind a decorator that is not
        return self._answer(returned)

    def _answer(self, returned: Any) -> Answer:
        kind = type(returned)
        if kind is self._plain_type:
            return Output(returned)
        # Plain values first: to ask for one of many classes takes longer than all the rest.
        if kind not in PLAIN_TYPES and isinstance(returned, Answer):
            return returned
        return Output(self._plain(returned))

    def _arguments(self, parameters: Any, context: NodeContext | None) -> dict[str, Any]:
        arguments = {name: getattr(parameters, field) for field, name in self._names.items()}
        return arguments | {self._context_name: context} if self._context_name else arguments

    def call_with(self, inputs: Mapping[str, Any]) -> Any:
        """Calls the function with JSON arguments, as another process received them."""
        return self._work.call(**self._arguments(self.accept(inputs), None))

    def _plain(self, returned: Any) -> Any:
        if self._result is None:
            return returned
        try:
            # Not through the adapter's own methods: they only hand on a dozen options, for more than the work costs.
            valid = self._result.validator.validate_python(returned)
            return valid if self._is_json else self._result.serializer.to_python(valid, mode="json", by_alias=True)
        except ValueError as refusal:  # what does not fit the hint, or cannot be written as JSON
            raise NodeFailure.permanent(_told(refusal)) from None


@overload
def node(function: Callable[P, R], /) -> FunctionNode[P, R]: ...
@overload
def node(
    *,
    name: str | None = None,
    summary: str | None = None,
    ports: tuple[str, ...] = (),
    placement: Place | None = None,
    limits: Limits | Mapping[str, Any] | None = None,
    **defaults: Any,
) -> Callable[[Callable[P, R]], FunctionNode[P, R]]: ...
def node(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    summary: str | None = None,
    ports: tuple[str, ...] = (),
    placement: Place | None = None,
    limits: Limits | Mapping[str, Any] | None = None,
    **defaults: Any,
) -> FunctionNode[P, R] | Callable[[Callable[P, R]], FunctionNode[P, R]]:
    """Makes a node type of a function; `defaults` (timeout, cache …) go to the nodes built of it in Python.

    `retry` goes to every node of this type that says none, also in YAML.
    """

    def made(function: Callable[P, R]) -> FunctionNode[P, R]:
        return FunctionNode(
            function, name=name, summary=summary, ports=ports, placement=placement, limits=limits, defaults=defaults
        )

    return made if function is None else made(function)


def _told(refusal: ValueError) -> str:
    from pydantic import ValidationError  # here, as in `_model`

    return describe(refusal, "output") if isinstance(refusal, ValidationError) else f"output: {refusal}"


def _first_line(function: Callable[..., Any]) -> str:
    return (inspect.getdoc(function) or "").partition("\n")[0]


def _require_function(given: Any, name: str | None) -> None:
    """Refuses, where its author sees it, what could never be a node."""
    if isinstance(given, NodeType) or not callable(given):
        raise TypeError(f"@node goes on a function, not on {given!r}")
    if name is None and not hasattr(given, "__name__"):
        raise TypeError(f"{given!r} has no name of its own; give it one: node(name=…)")
    if inspect.isgeneratorfunction(given) or inspect.isasyncgenfunction(given):
        raise TypeError(f"{name or given.__name__} yields its values one by one; a node returns them, in a list say")


def _hints(function: Function) -> dict[str, Any]:
    call = function.call
    while isinstance(call, partial):
        call = call.func
    # The hints of an object that can be called are those of the method.
    hinted = call if inspect.isroutine(call) or inspect.isclass(call) else type(call).__call__
    try:
        return get_type_hints(hinted, include_extras=True)
    except NameError as error:
        raise TypeError(f"{function.name}: a type hint cannot be read: {error}") from error


def _context_name(hints: Mapping[str, Any]) -> str | None:
    """The parameter that takes the context, also where it may be None for code that calls the function directly."""
    names = (name for name, hint in hints.items() if name != "return" and NodeContext in (hint, *get_args(hint)))
    return next(names, None)


def _parameter_names(function: Function, context_name: str | None) -> dict[str, str]:
    """The model's field for each parameter: made-up names, since `copy` or `_x` cannot be fields of a model."""
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(function.call).parameters
    for parameter in parameters.values():
        if parameter.kind not in named:
            raise TypeError(f"{function.name}: {parameter} cannot be given by name, so no workflow can give it")
    names = [name for name in parameters if name != context_name]
    return {f"field{place}": name for place, name in enumerate(names)}


def _model(function: Function, names: Mapping[str, str], hints: Mapping[str, Any]) -> Any:
    # Here, since a function that takes nothing and returns what it says is a node without the library.
    from pydantic import ConfigDict, Field, create_model
    from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

    parameters = inspect.signature(function.call).parameters
    fields: dict[str, Any] = {
        field: (hints.get(name, Any), Field(_default(parameters[name]), alias=name)) for field, name in names.items()
    }
    config = ConfigDict(extra="forbid", hide_input_in_errors=True, allow_inf_nan=False)
    try:
        model = create_model(function.name, __config__=config, **fields)
        # One whose hints name what is not there yet says so now, and not in an execution.
        model.model_rebuild()
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        raise TypeError(f"{function.name}: a parameter {_unfit(error)}") from error
    return model


def _unfit(error: "PydanticUserError | PydanticUndefinedAnnotation") -> str:
    """What is wrong with a hint, and what to write instead where that is known."""
    if error.code == "typed-dict-version":
        return "is hinted with typing.TypedDict, which can be read from Python 3.12 on: take it from typing_extensions"
    return f"has no form in JSON: {error}"


def _default(parameter: inspect.Parameter) -> Any:
    return ... if parameter.default is inspect.Parameter.empty else parameter.default


def _is_json(hint: Any) -> bool:
    """Whether every value that fits the hint is plain JSON, so that there is nothing left to convert."""
    if hint in JSON_TYPES:
        return True
    origin, parts = get_origin(hint), get_args(hint)
    if origin is dict:
        return parts[0] is str and _is_json(parts[1])
    return origin in (list, Union, UnionType) and all(_is_json(part) for part in parts)


def _adapter(hint: Any, name: str) -> "TypeAdapter[Any] | None":
    """What checks and writes the result; None when the hint says nothing about JSON."""
    kinds = get_args(hint) or (hint,)
    # Not `object` either: what pydantic makes of anything turns bytes into text, and sets into lists of any order.
    if hint in (Any, object, NoReturn, Never) or any(kind is Output or kind in get_args(Wait) for kind in kinds):
        return None
    from pydantic import TypeAdapter  # here, as in `_model`
    from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

    try:
        return TypeAdapter(hint)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        raise TypeError(f"{name}: the result {_unfit(error)}") from error
