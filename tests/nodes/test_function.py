"""Functions under `@node`."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from functools import partial, wraps
from typing import Annotated, Any, NoReturn, TypedDict

import pytest
import typing_extensions
from pydantic import BaseModel, Field, TypeAdapter

from ropewalk.core.errors import ErrorType
from ropewalk.core.schema import check_schema
from ropewalk.core.waits import Timer
from ropewalk.nodes.base import NodeContext, NodeFailure, Output, Placement, Registry
from ropewalk.nodes.function import node

from .conftest import context_of
from .samples import weigh


class Order(BaseModel):
    order_id: Annotated[str, Field(alias="orderId")]
    total: Decimal = Decimal(0)


@dataclass
class Receipt:
    at: datetime
    amount: Decimal


async def carried_out(facilities, node_type, **inputs):
    return await node_type.run(node_type.accept(inputs), context_of(facilities))


@node
def charge(order: Order, rate: float = 1.0) -> Receipt:
    """Charges an order.

    Twice if need be.
    """
    return Receipt(datetime(2026, 11, 15, tzinfo=UTC), order.total * Decimal(rate))


async def test_parameters_and_result_follow_the_hints(facilities):
    output = await carried_out(facilities, charge, order={"orderId": "o1", "total": "9.90"}, rate=2)

    assert output == Output({"at": "2026-11-15T00:00:00Z", "amount": "19.80"})


def test_a_decorated_function_is_still_a_function():
    assert charge(Order(orderId="o1", total=Decimal(3))).amount == Decimal(3)


def test_name_summary_and_schema_come_from_the_function():
    info = Registry([charge]).infos()["charge"]

    assert (info.summary, info.ports, charge.placement) == ("Charges an order.", (), Placement.THREAD)
    assert info.parameters["required"] == ["order"]
    assert info.parameters["properties"]["rate"] == {"title": "Rate", "default": 1.0, "type": "number"}
    assert check_schema(info.parameters) == []


def test_options_override_what_the_function_says():
    @node(name="crm.sync", summary="Syncs.", ports=("new", "old"), retry={"maxAttempts": 5}, timeout="10s")
    async def sync() -> None:
        return None

    assert (sync.name, sync.summary, sync.ports, sync.placement) == (
        "crm.sync",
        "Syncs.",
        ("new", "old"),
        Placement.LOOP,
    )
    assert sync.defaults == {"retry": {"maxAttempts": 5}, "timeout": "10s"}


async def test_the_context_is_given_to_a_function_that_asks_for_it(facilities):
    @node
    async def key(context: NodeContext, prefix: str = "") -> str:
        return prefix + context.idempotency_key

    assert await carried_out(facilities, key, prefix="k:") == Output("k:key-of-this-work")
    assert "context" not in Registry([key]).infos()["key"].parameters["properties"]


async def test_a_function_may_choose_ports_or_wait(facilities):
    @node(ports=("left", "right"))
    async def choose(side: str) -> Output:
        return Output(side, (side,))

    @node
    async def rest(context: NodeContext) -> Timer:
        return Timer(context.now + 1)

    assert await carried_out(facilities, choose, side="left") == Output("left", ("left",))
    assert isinstance(await carried_out(facilities, rest), Timer)


async def test_models_cross_into_another_process_as_json(facilities):
    output = await carried_out(facilities, weigh, order={"due": "2026-11-15", "prices": [60, 50.5]})

    assert output == Output({"due": "2026-11-15", "total": 110.5}, ("big",))


async def test_names_that_no_model_could_have_are_fine(facilities):
    @node
    async def odd(copy: int, model_config: int, schema: int, _x: int = 4) -> list[int]:
        return [copy, model_config, schema, _x]

    assert await carried_out(facilities, odd, copy=1, model_config=2, schema=3) == Output([1, 2, 3, 4])


async def test_without_hints_anything_goes_through(facilities):
    @node
    def loose(a, b=None):
        return {"a": a, "b": b}

    assert await carried_out(facilities, loose, a=[1]) == Output({"a": [1], "b": None})


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "with.order: Field required"),
        ({"order": {"orderId": 5}}, "with.order.orderId: Input should be a valid string"),
        ({"order": {"orderId": "a"}, "rat": 1}, "with.rat: Extra inputs are not permitted"),
    ],
)
async def test_inputs_that_do_not_fit_the_hints_are_permanent_failures(facilities, inputs, message):
    with pytest.raises(NodeFailure) as caught:
        await carried_out(facilities, charge, **inputs)

    assert (caught.value.error.type, caught.value.error.message) == (ErrorType.PERMANENT, message)


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("hint", "returned"),
    [
        (dict[str, str], {Colour.RED: Colour.RED}),
        (dict[str, list[int]], {"a": [True, 2.0]}),
        (str | int | None, None),
        (list[dict[str, bool]], [{"a": 1}]),
        (dict[str, float], {"a": 1}),
        (dict[str, datetime], {"a": datetime(2026, 11, 15, tzinfo=UTC)}),
        (dict[int, str], {1: "a"}),
        (tuple[int, ...], (1, 2)),
        (list[Any], [Decimal(1)]),
    ],
)
async def test_a_result_is_what_its_hint_makes_of_it_in_json(facilities, hint, returned):
    async def give():
        return returned

    give.__annotations__["return"] = hint
    adapter: TypeAdapter[Any] = TypeAdapter(hint)
    in_json = adapter.dump_python(adapter.validate_python(returned), mode="json")

    output = await carried_out(facilities, node(give))

    assert repr(output.value) == repr(in_json)


async def test_a_result_that_does_not_fit_its_hint_is_a_permanent_failure(facilities):
    @node
    async def lies() -> dict[str, int]:
        return {"a": "secret"}  # type: ignore[dict-item]  # on purpose

    with pytest.raises(NodeFailure) as caught:
        await carried_out(facilities, lies)

    assert caught.value.error.type is ErrorType.PERMANENT
    assert caught.value.error.message.startswith("output.a: Input should be a valid integer")
    assert "secret" not in caught.value.error.message


@pytest.mark.parametrize("hint", [Any, object])
@pytest.mark.parametrize("returned", [b"x", {1, 2}])
async def test_a_hint_that_allows_anything_makes_nothing_of_what_is_no_json(facilities, hint, returned):
    async def give():
        return returned

    give.__annotations__["return"] = hint

    assert await carried_out(facilities, node(give)) == Output(returned)


class Row(TypedDict):
    """As the standard library of Python 3.11 has it, which does not tell enough of its fields."""

    id: int


class Line(typing_extensions.TypedDict):
    id: int


def takes(row: Row) -> int:
    return row["id"]


def gives() -> Row:
    return {"id": 1}


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="from Python 3.12 on it can be read")
@pytest.mark.parametrize(("function", "what"), [(takes, "takes: a parameter"), (gives, "gives: the result")])
def test_a_typed_dict_that_cannot_be_read_says_where_to_take_it_from(function, what):
    with pytest.raises(TypeError, match=f"^{what} is hinted with typing.TypedDict, .*: take it from typing_ext"):
        node(function)


async def test_a_typed_dict_of_typing_extensions_is_what_it_says(facilities):
    async def doubled(given: Line) -> Line:
        return {"id": given["id"] * 2}

    assert await carried_out(facilities, node(doubled), given={"id": "2"}) == Output({"id": 4})


async def test_a_result_that_fits_its_hint_and_is_no_json_is_a_permanent_failure(facilities):
    @node
    async def gives() -> bytes:
        return b"\xff"

    with pytest.raises(NodeFailure) as caught:
        await carried_out(facilities, gives)

    assert caught.value.error.type is ErrorType.PERMANENT
    assert caught.value.error.message.startswith("output: ")


def star(*args: int) -> None: ...
def stars(**kwargs: int) -> None: ...
def positional(a: int, /) -> None: ...
def unreadable(a: "Nowhere") -> None: ...  # noqa: F821 -- on purpose
def formless(a: object.__class__, b: NodeFailure) -> None: ...
def formless_result() -> NodeFailure: ...  # type: ignore[empty-body]  # never called
def unknown_inside(a: "list[dict[str, 'Nowhere']]") -> None: ...  # type: ignore[name-defined]  # noqa: F821 -- on purpose
def yields(count: int):
    yield from range(count)


async def yields_later(count: int):
    yield count


@pytest.mark.parametrize(
    "function",
    [star, stars, positional, unreadable, formless, formless_result, unknown_inside, yields, yields_later],
)
def test_a_function_that_no_workflow_could_call_is_refused_at_once(function):
    with pytest.raises(TypeError, match=function.__name__):
        node(function)


@pytest.mark.parametrize("given", [5, charge, partial(max, 1)])
def test_what_is_no_function_or_has_no_name_is_refused_at_once(given):
    with pytest.raises(TypeError, match=r"@node goes on a function|has no name of its own"):
        node(given)


def test_parameters_that_no_schema_describes_are_refused_by_their_name():
    @node
    def call(back: Callable[[int], int]) -> int:
        return back(1)

    with pytest.raises(ValueError, match="call: its parameters cannot be described"):
        Registry([call])


class Scale:
    """Something that can be called, and has a method."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def __call__(self, a: int) -> str:
        return str(self.factor * a)

    async def later(self, a: int) -> str:
        return self(a)


class LaterScale(Scale):
    async def __call__(self, a: int) -> str:
        return super().__call__(a)


def undecided(function):
    """A decorator that hides whether the function is async."""

    @wraps(function)
    def wrapped(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapped


@pytest.mark.parametrize(
    "function",
    [
        partial(lambda factor, a: str(factor * a), 3),
        partial(lambda a, factor: str(factor * a), factor=3),
        Scale(3),
        LaterScale(3),
        Scale(3).later,
        undecided(Scale(3).later),
    ],
)
async def test_everything_that_can_be_called_by_names_can_be_a_node(facilities, function):
    assert await carried_out(facilities, node(name="scale")(function), a=2) == Output("6")


@pytest.mark.parametrize("function", [Scale(3), partial(Scale(3), 1), Scale(3).__call__])
def test_what_another_process_could_not_import_is_refused_at_once(function):
    with pytest.raises(ValueError, match="cannot be imported"):
        node(name="scale", placement="process")(function)


async def test_a_context_that_may_be_missing_is_given_too(facilities):
    @node
    async def key(context: NodeContext | None = None) -> bool:
        return context is not None

    assert await carried_out(facilities, key) == Output(True)


def test_a_function_that_never_returns_may_say_so():
    @node
    def gives_up() -> NoReturn:
        raise NodeFailure.permanent("no")

    assert gives_up.Parameters is None


def test_the_context_cannot_go_to_another_process():
    def probe(context: NodeContext) -> Any: ...

    probe.__qualname__ = "probe"
    with pytest.raises(TypeError, match="context"):
        node(placement=Placement.PROCESS)(probe)


def test_a_function_that_takes_nothing_waits_for_no_library():
    script = (
        "import asyncio, sys\n"
        "from ropewalk.nodes.function import FunctionNode\n"
        "from ropewalk.nodes.base import Registry\n"
        "async def tick() -> None: ...\n"
        "types = Registry([FunctionNode(tick)])\n"
        "tick = types.get('tick')\n"
        "ended = asyncio.run(tick.run(tick.accept({}), None))\n"
        "print(ended.value, 'pydantic' in sys.modules)"
    )

    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert ended.stdout.split() == ["None", "False"]
