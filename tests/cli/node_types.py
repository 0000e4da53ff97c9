"""Node types that tests can see at work: their effects are lines in a file, and a gate holds them."""

import asyncio
import os
import signal
from pathlib import Path

from ropewalk.nodes.base import NodeContext, NodeFailure, Output
from ropewalk.nodes.function import node
from ropewalk.workflow import Workflow


@node
async def hold(gate: str, context: NodeContext) -> str:
    """Notes that it began, and ends when the gate is there."""
    with Path("ledger.txt").open("a", encoding="utf-8") as ledger:
        ledger.write(f"{context.node}\n")
    context.log("holding")
    while not Path(gate).exists():
        await asyncio.sleep(0.01)
    return context.node


@node
async def stay() -> None:
    """Does not stop when it is told to."""
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


@node
def crash() -> None:
    """Takes its process along, as a fault in native code does."""
    os.kill(os.getpid(), signal.SIGSEGV)


@node
async def spin() -> None:
    """Keeps the loop of its process busy for ever, once it has said so."""
    Path("spinning").touch()
    while True:
        pass


@node
def charge(card: str) -> str:
    """Takes every card but one."""
    if card == "expired":
        raise NodeFailure.permanent("the card has expired")
    return f"charged {card}"


@node
def flaky(context: NodeContext) -> int:
    """Fails at the first attempt."""
    if context.attempt == 1:
        raise ConnectionError("\x1b[31mno answer\x1b[0m")
    return context.attempt


@node
def write(context: NodeContext) -> Output:
    """Fails at the first attempt, and counts what each took."""
    if context.attempt == 1:
        raise NodeFailure.transient("cut off", tokens=1_000)
    return Output("Dear Ann", tokens=234)


greeting = Workflow("greeting")
greeting.node("hello", "set", values={"text": "hello"})
