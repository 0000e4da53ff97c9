"""What models cost an execution, and the budget that pauses it.

What the models of an execution have used is counted in the kept values of its workspace. A node whose budget is used
up pauses its execution and waits without using up its attempt. A person who resumes the execution grants as much again:
the node finds its own request, which it wrote after the pause was durable, and raises what is allowed.
"""

from collections.abc import Iterator
from typing import Final, Self

import uuid_utils
from msgspec import Struct
from pydantic import Field, model_validator

from ropewalk.core.duration import DAY
from ropewalk.core.waits import BudgetWait
from ropewalk.nodes.context import NodeContext
from ropewalk.nodes.executions import executions_of, speaker_of
from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.keeping import Condition, KeptValues
from ropewalk.nodes.llm.speech import Reply

KEPT_FOR: Final = 90 * DAY
MILLION: Final = 1_000_000


class Price(Inputs):
    """What a model costs."""

    input: float = Field(ge=0, description="For a million tokens that it reads.", examples=[0.5])
    output: float = Field(ge=0, description="For a million tokens that it writes.", examples=[1.5])


class Budget(Inputs):
    """How much the models of one execution may use together."""

    tokens: int | None = Field(None, ge=1, description="Tokens, read and written.", examples=[100_000])
    cost: float | None = Field(None, gt=0, description="Money, in the unit of `prices`.", examples=[2.5])

    @model_validator(mode="after")
    def _limits_something(self) -> Self:
        if self.tokens is None and self.cost is None:
            raise ValueError("give tokens, cost or both")
        return self

    def limits(self) -> Iterator[tuple[str, float]]:
        if self.tokens is not None:
            yield "tokens", self.tokens
        if self.cost is not None:
            yield "cost", self.cost


class Used(Struct):
    """What one attempt has used; `cost` is None if the price of a model is not known."""

    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = 0.0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def add(self, reply: Reply, price: Price | None) -> None:
        self.tokens_in += reply.tokens_in
        self.tokens_out += reply.tokens_out
        paid = None if price is None else (reply.tokens_in * price.input + reply.tokens_out * price.output) / MILLION
        self.cost = None if self.cost is None or paid is None else self.cost + paid


async def count(context: NodeContext, used: Used) -> None:
    """Adds what an attempt has used to what its execution has; nothing where no store is."""
    values = context.facilities.kept_values
    if values is None:
        return
    try:
        for what, amount in (("tokens", used.tokens), ("cost", used.cost)):
            if amount:
                await values.add(context.workspace, _key(context, what), amount, KEPT_FOR, _a_work())
    except NodeFailure as failure:
        # An answer that is paid for is worth more than its place in the count.
        context.record("warning", f"what the model used is not counted: {failure}", {"tokens": used.tokens})


async def held(context: NodeContext, budget: Budget) -> BudgetWait | None:
    """None: there is something left. Else the execution is paused, and the attempt waits until it is resumed."""
    values = context.facilities.kept_values
    if values is None:
        raise NodeFailure.permanent("a budget is kept by the store: run this node on a worker of the store")
    for what, limit in budget.limits():
        spent = await _number(values, context, _key(context, what))
        allowed = await _allowed(values, context, what, limit)
        if spent >= allowed:
            return await _ask(values, context, what, spent, allowed)
    return None


async def _allowed(values: KeptValues, context: NodeContext, what: str, limit: float) -> float:
    """How much may be used: the budget or, where a person has resumed the execution, as much again as was asked for."""
    granted = _key(context, f"{what}/granted")
    allowed = max(limit, await _number(values, context, granted))
    asked = await values.get(context.workspace, _place(context, what))
    if asked.is_there:
        allowed = max(allowed, asked.value + limit)
        await values.put(context.workspace, granted, allowed, KEPT_FOR, Condition(), _a_work())
        await values.remove(context.workspace, _place(context, what), Condition(), _a_work())
    return allowed


async def _ask(values: KeptValues, context: NodeContext, what: str, spent: float, allowed: float) -> BudgetWait:
    reason = f"node {context.node} has used {spent:g} of {allowed:g} {what}: resume to allow as much again"
    # In this order: a request without a pause would be taken for a grant.
    await executions_of(context).pause(speaker_of(context), reason)
    await values.put(context.workspace, _place(context, what), spent, KEPT_FOR, Condition(), _a_work())
    return BudgetWait(what, spent, allowed, context.now)


async def _number(values: KeptValues, context: NodeContext, key: str) -> float:
    kept = await values.get(context.workspace, key)
    return kept.value if kept.is_there and isinstance(kept.value, int | float) else 0


def _key(context: NodeContext, what: str) -> str:
    return f"llm/{context.execution}/{what}"


def _place(context: NodeContext, what: str) -> str:
    return _key(context, f"{what}/asked/{context.node}/{'' if context.item is None else context.item}")


def _a_work() -> str:
    """Each write for itself: what an attempt has used is used, also if it is repeated."""
    return str(uuid_utils.uuid7())
