"""Functions that another process can import."""

import os
import signal
from datetime import date
from typing import Any

from pydantic import BaseModel

from ropewalk.nodes.base import NodeFailure, Output, Placement
from ropewalk.nodes.function import node


class Order(BaseModel):
    due: date
    prices: list[float]


def add(a: int, b: int) -> int:
    return a + b


async def add_async(a: int, b: int) -> int:
    return a + b


def where_am_i() -> int:
    os.write(1, b"this must not get between the answers\n")
    return os.getpid()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def spin() -> None:
    while True:
        pass


def leave() -> None:
    raise SystemExit(3)


def refuse() -> None:
    raise NodeFailure.permanent("no such customer")


def hand_on(value: Any = None) -> Any:
    return value


def not_a_number() -> float:
    return float("nan")


def counted() -> Output:
    return Output("Dear Ann", tokens=12)


@node(placement=Placement.PROCESS, ports=("big", "small"))
def weigh(order: Order) -> Output:
    """Sums an order."""
    total = sum(order.prices)
    return Output({"due": order.due, "total": total}, ("big" if total > 100 else "small",))
