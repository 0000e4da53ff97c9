"""Moves a file of so many MiB through three nodes in a process of its own, and says by how much its memory grew.

`python -m tests.engines.file_memory STORE FOLDER MIB`
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from ropewalk.local import LocalEngine
from ropewalk.nodes.base import NodeContext, NodeType, Output, Registry
from ropewalk.nodes.files import as_value, file_of
from ropewalk.nodes.inputs import Inputs
from ropewalk.wiring import Settings, open_service

MIB = 2**20
LINE = b"0123456789 abcdefghijklmnopqrstuvwxyz 0123456789 abcdefghijklmn\n"
FLOW = {
    "name": "move",
    "nodes": [
        {"id": "read", "type": "file.read", "with": {"path": "{{ input.from }}"}},
        {"id": "upper", "type": "upper", "with": {"file": "{{ nodes.read.output.file }}"}},
        {"id": "write", "type": "file.write", "with": {"path": "{{ input.to }}", "file": "{{ nodes.upper.output }}"}},
    ],
    "edges": [{"from": "read", "to": "upper"}, {"from": "upper", "to": "write"}],
    "output": "{{ nodes.write.output.size }}",
}


class Upper(NodeType):
    """Writes another file of what it reads."""

    name = "upper"

    class Parameters(Inputs):
        file: dict[str, Any]

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        file = file_of(parameters.file)
        assert file is not None

        async def changed() -> AsyncIterator[bytes]:
            async for chunk in context.files.read(file):
                yield chunk.upper()

        return Output(as_value(await context.files.write(changed(), file.name, file.type)))


def memory(kind: str) -> int:
    """So many bytes of memory the process has (VmRSS), or had at the most (VmHWM)."""
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{kind}:")]
    return int(line.split()[1]) * 1024


def made(folder: Path, mib: int) -> str:
    (folder / "default").mkdir(exist_ok=True)
    with (folder / "default" / f"{mib}.txt").open("wb") as file:
        for number in range(mib):
            file.write(f"{number:09}".encode() + LINE * (MIB // len(LINE)))
    return f"{mib}.txt"


async def moved(local: LocalEngine, folder: Path, mib: int) -> None:
    name = made(folder, mib)
    size = await (await local.start(FLOW, {"from": name, "to": f"out-{name}"})).result()
    assert size == (folder / "default" / name).stat().st_size >= mib * MIB
    with (folder / "default" / name).open("rb") as one, (folder / "default" / f"out-{name}").open("rb") as two:
        while chunk := one.read(MIB):
            assert two.read(MIB) == chunk.upper()


async def main(store: str, folder: Path, mib: int) -> None:
    types = Registry.builtin()
    types.register(Upper())
    async with open_service(Settings(db=store, files_root=str(folder)), types) as service:
        local = LocalEngine(service)
        # What every first run loads is no part of it.
        await moved(local, folder, 4)
        before = memory("VmRSS")
        await moved(local, folder, mib)
        sys.stdout.write(f"{(memory('VmHWM') - before) // 1024}\n")


asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
