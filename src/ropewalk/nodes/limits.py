"""How much a process of a node may take: memory, time of a processor, open files."""

import math
import os
import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct

MIB: Final = 1024 * 1024
SMALLEST_MEMORY: Final = 16 * MIB
LARGEST_MEMORY: Final = 2**40
LONGEST_CPU: Final = 24 * 60 * 60
FEWEST_FILES: Final = 16
MOST_FILES: Final = 65_536
NAMES: Final = ("memory", "cpuSeconds", "files")

Size: TypeAlias = int | str
_SIZE = re.compile(r"([0-9]{1,15})\s*(B|KiB|MiB|GiB)?")
_UNITS = {None: 1, "B": 1, "KiB": 1024, "MiB": MIB, "GiB": 1024 * MIB}


class Limits(Struct, frozen=True, omit_defaults=True):
    """What a process may take at most; None where it is not limited.

    Memory is address space beyond what the process has before its first call, in bytes. The time is that of a
    processor in one call, in whole seconds.
    """

    memory: int | None = None
    cpu_seconds: int | None = None
    files: int | None = None

    def told(self, name: str) -> str:
        """The limit of this name as people read it."""
        match name:
            case "memory":
                return f"its memory limit of {size_text(self.memory or 0)}"
            case "cpuSeconds":
                return f"its limit of {self.cpu_seconds} CPU seconds"
            case _:
                return f"its limit of {self.files} open files"


def as_limits(given: "Limits | Mapping[str, Any] | None") -> Limits | None:
    """The limits that a program or a document names; ValueError says what is wrong with them."""
    if given is None or isinstance(given, Limits):
        return given
    if not isinstance(given, Mapping):
        raise ValueError(f"limits are an object of {', '.join(NAMES)}")
    if unknown := [str(name) for name in given if name not in NAMES]:
        raise ValueError(f"limits: there is no {unknown[0]!r}; there are {', '.join(NAMES)}")
    memory = given.get("memory")
    return Limits(
        None if memory is None else _between(as_bytes(memory), SMALLEST_MEMORY, LARGEST_MEMORY, "memory"),
        _count(given.get("cpuSeconds"), 1, LONGEST_CPU, "cpuSeconds"),
        _count(given.get("files"), FEWEST_FILES, MOST_FILES, "files"),
    )


def as_bytes(size: Any) -> int:
    """A size like `256MiB`, or a number of bytes, as a number; ValueError if it is none."""
    if isinstance(size, int) and not isinstance(size, bool):
        return size
    found = _SIZE.fullmatch(size) if isinstance(size, str) else None
    if found is None:
        raise ValueError("is no size; write it like 256MiB, or as a number of bytes")
    return int(found[1]) * _UNITS[found[2]]


def size_text(size: int) -> str:
    """A number of bytes as people read it."""
    return f"{size // MIB} MiB" if size >= MIB and size % MIB == 0 else f"{size} bytes"


def _count(given: Any, least: int, most: int, name: str) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int):
        raise ValueError(f"limits.{name}: must be a whole number")
    return _between(given, least, most, name)


def _between(given: int, least: int, most: int, name: str) -> int:
    if not least <= given <= most:
        low, high = (size_text(least), size_text(most)) if name == "memory" else (str(least), str(most))
        raise ValueError(f"limits.{name}: must be between {low} and {high}")
    return given


def limit_own_memory(limits: Limits) -> None:
    """Limits this process for good; what it takes by now is not counted."""
    import resource  # here and below: a process that limits nothing does without

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if limits.memory is not None:
        most = own_address_space() + limits.memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    if limits.files is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limits.files, limits.files))


def limit_own_time(limits: Limits) -> None:
    """Gives this process its seconds of a processor from now on; the system ends it when they are used up."""
    import resource

    if limits.cpu_seconds is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        until = math.ceil(used.ru_utime + used.ru_stime) + limits.cpu_seconds
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (until, hard))


def own_address_space() -> int:
    """How many bytes of address space this process has; a guess where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as told:
            return int(told.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 512 * MIB
