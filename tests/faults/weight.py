"""Executions that store much: what a viewer's reads of them cost a server, and what its memory does meanwhile."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from ropewalk.nodes.values import LARGEST_OUTPUT
from tests.api.servers import UpServer, up
from tests.faults.figures import Figure, Outcome

MIB: Final = 2**20
INPUT: Final = 600_000
"""So many characters has the input over which the map goes."""
MOST_READ: Final = 200.0
"""So much more memory (MiB) a read of an execution may take, with any log."""
MOST_GATHERED: Final = 1_000.0
"""The same for an execution whose large results are gathered into its output."""
PATIENCE: Final = 240.0
READS: Final = ("", "/nodes", "/explain", "/events?limit=1")
ENDED: Final = ("SUCCESS", "FAILED")


def heavy_executions(folder: Path, items: int, results: int) -> Outcome:
    """A map of so many items over one input, and so many results of 1 MB."""
    folder.mkdir(parents=True)
    figures: list[Figure] = []
    violations: list[str] = []
    with up(folder) as server:
        viewer = server.ask("POST", "/keys", json={"name": "viewer", "role": "viewer"}).json()["token"]
        over_one_input = _document("input", {"all": "{{ input }}"}, items, output="{{ 1 }}")
        execution = _run(server, over_one_input, "x" * INPUT, figures, "map", "SUCCESS", violations)
        for path in READS:
            read = _read(server, viewer, execution, path)
            _weigh(
                server, f"read_{path.strip('/').partition('?')[0] or 'execution'}", read, MOST_READ, figures, violations
            )
        # An output has 64 MiB at most, and an execution stores 1 GiB at most: neither is reached in memory first.
        state = "FAILED" if results * MIB > LARGEST_OUTPUT else "SUCCESS"
        shapes = {"same_results": {"text": "{{ input }}"}, "own_results": {"n": "{{ item }}", "text": "{{ input }}"}}
        for name, values in shapes.items():
            given = (_document(name, values, results), "y" * (MIB - 100), figures, name, state, violations)
            _weigh(server, f"gathering_{name}", partial(_run, server, *given), MOST_GATHERED, figures, violations)
    return Outcome("weight", figures, violations)


def _document(name: str, values: dict[str, str], count: int, **fields: Any) -> dict[str, Any]:
    each = {"id": "each", "type": "set", "with": {"values": values}, "forEach": f"{{{{ range(0, {count}) }}}}"}
    return {"ropewalk": 1, "name": name, "nodes": [each], **fields}


def _run(server: UpServer, document: dict[str, Any], given: str, figures: list[Figure], name: str, state: str,
         violations: list[str]) -> str:  # fmt: skip
    """Starts it and waits for its end, which is to be this one; its id."""
    began = time.monotonic()
    workflow = server.ask("POST", "/workflow/definitions?publish=true", json=document).json()["id"]
    body = {"workflowDefinitionId": workflow, "input": given}
    execution: str = server.ask("POST", "/workflow/executions/start", json=body).json()["executionId"]
    found = ""
    while found not in ENDED and time.monotonic() - began < PATIENCE:
        found = server.ask("GET", f"/workflow/executions/{execution}?wait=30s").json()["state"]
    if found != state:
        violations.append(f"{name}: the execution is {found}, not {state}")
    figures.append(Figure(f"{name}_seconds", round(time.monotonic() - began, 1), "s", 1))
    return execution


def _read(server: UpServer, token: str, execution: str, path: str) -> Callable[[], None]:
    def read() -> None:
        server.ask("GET", f"/workflow/executions/{execution}{path}", token).raise_for_status()

    return read


def _weigh(server: UpServer, name: str, work: Callable[[], object], most: float, figures: list[Figure],
           violations: list[str]) -> None:  # fmt: skip
    """How much more memory the server has had at once during the work than before, and how long the work took."""
    process = Path(f"/proc/{server.process.pid}")
    (process / "clear_refs").write_text("5")  # the most it has had is what it has now
    before, began = _memory(process, "VmRSS"), time.monotonic()
    work()
    more = _memory(process, "VmHWM") - before
    figures.append(Figure(f"{name}_mib", round(more, 1), "MiB", 1))
    figures.append(Figure(f"{name}_ms", round(1000 * (time.monotonic() - began), 1), "ms", 1))
    if more > most:
        violations.append(f"{name}: took {more:.0f} MiB, at most {most:.0f} are meant")


def _memory(process: Path, field: str) -> float:
    lines = (process / "status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:"))
