"""What one execution has to tell another: a row in an inbox, in the commit of the events that cause it.

A second telling decides nothing.
"""

import random
from collections.abc import Sequence

import msgspec
import uuid_utils

from ropewalk.core.commands import Command, Finish, StartChild
from ropewalk.core.kinship import ENDS, end_of_child, verb_of_parent
from ropewalk.core.signals import Signal
from ropewalk.engines.native.live import Live


def write_down(live: Live, commands: Sequence[Command]) -> None:
    """Put what commands say to other executions into the commit of the events that caused them."""
    for command in commands:
        if isinstance(command, Finish):
            _tell_parent(live)
        elif isinstance(command, StartChild):
            # To itself: the child is started from the letter, by the worker that owns the parent then.
            post(live, live.id, command)
        elif (verb := verb_of_parent(command)) is not None:
            post(live, *verb)


def _tell_parent(live: Live) -> None:
    parent = live.accepted.parent
    # Without an end in this commit it was told of with the commit that had it.
    end = next((event for event in reversed(live.events) if type(event) in ENDS), None)
    if parent is not None and end is not None:
        x = live.execution
        told = end_of_child(parent, end, x.opening, random.random(), undone=x.has_undone)
        post(live, parent.execution, told)


def post(live: Live, execution: str, signal: Signal | StartChild) -> None:
    """Tell another execution this, with the next commit of this one."""
    letter = str(uuid_utils.uuid7())
    text = msgspec.json.encode(signal).decode()
    live.rows.append(("insert_inbox", (letter, execution, text, live.execution.now)))
    live.post.append((letter, execution, signal))
