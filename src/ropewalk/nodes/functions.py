"""The Python functions that workflows may call by name. What is not registered cannot be called."""

import inspect
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.limits import Limits, as_limits
from ropewalk.nodes.work import Place, Placement


class Function(Struct, frozen=True):
    """One registered function; `reference` is where another process finds it."""

    name: str
    call: Callable[..., Any]
    placement: Placement
    reference: str | None = None
    limits: Limits | None = None


class Functions:
    """Functions by name."""

    def __init__(self) -> None:
        self._by_name: dict[str, Function] = {}

    def register(
        self,
        function: Callable[..., Any] | str,
        name: str | None = None,
        placement: Place | None = None,
        limits: Limits | Mapping[str, Any] | None = None,
    ) -> None:
        """Makes a function, or the one at `module:name`, callable from workflows."""
        found = pkgutil.resolve_name(function) if isinstance(function, str) else function
        entry = as_function(found, name, placement, limits)
        if entry.name in self._by_name:
            raise ValueError(f"a function named {entry.name!r} is registered already")
        self._by_name[entry.name] = entry

    def add_missing(self, others: "Functions") -> None:
        """Makes those of the others callable whose names are not taken."""
        self._by_name = {**others._by_name, **self._by_name}

    def get(self, name: str) -> Function:
        """The function of this name; a permanent failure says which there are."""
        if name in self._by_name:
            return self._by_name[name]
        known = ", ".join(sorted(self._by_name)[:20]) or "none"
        raise NodeFailure.permanent(f"no function named {name!r} is registered; there are: {known}")


def as_function(
    call: Callable[..., Any],
    name: str | None = None,
    placement: Place | None = None,
    limits: Limits | Mapping[str, Any] | None = None,
) -> Function:
    """The function and where to carry it out: async on the loop, others on a thread, unless it asks otherwise."""
    is_async = inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__)
    chosen = Placement(placement or (Placement.LOOP if is_async else Placement.THREAD))
    if chosen is Placement.LOOP and not is_async:
        raise ValueError(f"{call!r} would block the loop; only an async function can be carried out there")
    if chosen is Placement.THREAD and is_async:
        raise ValueError(f"{call!r} is async; it belongs on the loop")
    if limits is not None and chosen is not Placement.PROCESS:
        raise ValueError(f'{call!r} has limits, which only a process of its own keeps: placement="process"')
    reference = _reference(call) if chosen is Placement.PROCESS else None
    return Function(name or call.__name__, call, chosen, reference, as_limits(limits))


def isolated(function: Function, limits: Limits | None) -> Function:
    """The same function in a process of its own, with these limits or else its own; ValueError if none can find it."""
    reference = function.reference or _reference(function.call)
    return Function(function.name, function.call, Placement.PROCESS, reference, limits or function.limits)


def _reference(call: Callable[..., Any]) -> str:
    # A method, or an object that can be called, carries along what stays behind; a class is found by its name.
    is_bound = inspect.ismethod(call) and not inspect.isclass(call.__self__)
    if is_bound or not hasattr(call, "__qualname__") or call.__module__ == "__main__" or "<" in call.__qualname__:
        raise ValueError(f"{call!r} cannot be imported by another process; put it at the top of a module")
    return f"{call.__module__}:{call.__qualname__}"
