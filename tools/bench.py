"""What the core costs, as JSON lines `{"workload","metric","value","unit","n"}`, beside graphlib on the same graph.

Every figure is the median of a few rounds in one process; figures of different runs do not compare.
"""

import gc
import json
import resource
import statistics
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from graphlib import TopologicalSorter
from typing import Any

from ropewalk.core import log
from ropewalk.core.commands import RunNode
from ropewalk.core.definition import parse_definition
from ropewalk.core.definition.node_type import NodeTypeInfo
from ropewalk.core.definition.validation import Limits
from ropewalk.core.events import ExecutionAccepted
from ropewalk.core.execution import Execution
from ropewalk.core.expression import Expression, Scope, compile_expression
from ropewalk.core.plan import Plan, compile_plan
from ropewalk.core.signals import Signal, Start, Succeeded

TYPES = {"noop": NodeTypeInfo("noop")}
WIDE = Limits(nodes=200_000, edges=1_000_000)
Document = dict[str, Any]
EVALUATIONS = 20_000


def layered(size: int) -> Document:
    """Layers of a hundred nodes, each node with three edges from the layer before."""
    width = 100
    pairs = [
        (layer * width + (node * 7 + k * 31) % width, node)
        for node in range(width, size)
        for layer in (node // width - 1,)
        for k in range(3)
    ]
    return _document(size, pairs)


def chain(size: int) -> Document:
    return _document(size, [(node, node + 1) for node in range(size - 1)])


def fanout(size: int) -> Document:
    """One node, then all others at once, then a join."""
    middle = range(1, size - 1)
    return _document(size, [(0, node) for node in middle] + [(node, size - 1) for node in middle])


def _document(size: int, pairs: list[tuple[int, int]]) -> Document:
    return {
        "ropewalk": 1,
        "name": "bench",
        "nodes": [{"id": f"n{node}", "type": "noop"} for node in range(size)],
        "edges": [{"from": f"n{source}", "to": f"n{target}"} for source, target in pairs],
    }


def walk(plan: Plan) -> list[bytes]:
    """Take an execution from its start to its end, every event made and encoded; returns its log."""
    execution = Execution(plan)
    first = ExecutionAccepted(1, "bench", "default", "bench", 1, "")
    execution.apply([first])
    entries = [log.encode(1, [first])]
    ready: deque[RunNode] = deque()

    def tell(signal: Signal) -> None:
        seq = execution.seq + 1
        events = execution.handle(signal, 2)
        if events:
            entries.append(log.encode(seq, events))
        ready.extend([each for each in execution.take_commands() if type(each) is RunNode])

    tell(Start())
    while ready:
        run = ready.popleft()
        tell(Succeeded(run.node, run.attempt, {"ok": True}))
    assert execution.is_ended
    return entries


def replay(plan: Plan, entries: list[bytes]) -> Execution:
    execution = Execution(plan)
    execution.apply(log.decode_all(entries))
    return execution


def sort_with_graphlib(document: Document) -> None:
    """The same walk by the standard library: no events, no states, nothing recorded."""
    sorter: TopologicalSorter[str] = TopologicalSorter({node["id"]: () for node in document["nodes"]})
    for edge in document["edges"]:
        sorter.add(edge["to"], edge["from"])
    sorter.prepare()
    while sorter.is_active():
        for node in sorter.get_ready():
            sorter.done(node)


def timed(action: Callable[[], Any], rounds: int) -> float:
    """Median seconds of CPU, so that a noisy neighbour does not count."""
    seconds = []
    for _ in range(rounds):
        gc.collect()
        began = time.process_time()
        action()
        seconds.append(time.process_time() - began)
    return statistics.median(seconds)


def report(workload: str, metric: str, value: float, unit: str, n: int) -> None:
    line = {"workload": workload, "metric": metric, "value": round(value, 3), "unit": unit, "n": n}
    print(json.dumps(line, ensure_ascii=False), flush=True)


def bench_graph(name: str, document: Document, rounds: int) -> None:
    size = len(document["nodes"])

    def compiled() -> Plan:
        return compile_plan(parse_definition(document, TYPES, WIDE))

    plan = compiled()
    entries = walk(plan)
    events = sum(1 for _ in log.decode_all(entries))
    walking = timed(lambda: walk(plan), rounds)
    report(name, "compile_s", timed(compiled, rounds), "s", size)
    report(name, "us_per_node", walking / size * 1e6, "µs", size)
    report(name, "events_per_s", events / walking, "1/s", events)
    report(name, "replay_us_per_node", timed(lambda: replay(plan, entries), rounds) / size * 1e6, "µs", size)
    graphlib = timed(lambda: sort_with_graphlib(document), rounds)
    report(name, "graphlib_us_per_node", graphlib / size * 1e6, "µs", size)


def bench_expressions() -> None:
    scope = Scope(input={"order": {"total": 120, "lines": [{"price": n} for n in range(10)]}})
    for name, source in {
        "path": "input.order.total",
        "comparison": "input.order.total > 100",
        "function": "upper('abc') + '-' + text(round(input.order.total / 7, 2))",
        "map": "sum(map(input.order.lines, line => line.price))",
    }.items():
        seconds = timed(partial(evaluate_often, compile_expression(source), scope), 3)
        report(f"expression_{name}", "us", seconds / EVALUATIONS * 1e6, "µs", EVALUATIONS)


def evaluate_often(expression: Expression, scope: Scope) -> None:
    for _ in range(EVALUATIONS):
        expression.evaluate(scope)


def main() -> None:
    for thousand, rounds in ((1, 9), (10, 5), (100, 3)):
        bench_graph(f"core_layered_{thousand}k", layered(thousand * 1_000), rounds)
    bench_graph("core_chain_100k", chain(100_000), 3)
    bench_graph("core_fanout_100k", fanout(100_000), 3)
    bench_expressions()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    report("core", "peak_rss_mb", peak, "MiB", 1)


if __name__ == "__main__":
    main()
