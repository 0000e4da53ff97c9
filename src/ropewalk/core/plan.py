"""A definition compiled for walking: integer node ids in document order, one array per question an execution asks."""

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from ropewalk.core.canonical import JSON, content_hash
from ropewalk.core.closing_nodes import UNDOES
from ropewalk.core.definition import Definition
from ropewalk.core.definition.topology import ERROR_PORT
from ropewalk.core.duration import MINUTE, parse_duration
from ropewalk.core.error_ways import error_ways
from ropewalk.core.errors import VersionLost
from ropewalk.core.expression import Template, compile_template
from ropewalk.core.repeat import Repeat, repeat_of
from ropewalk.core.retry import DEFAULT_RETRY, RetryPolicy

if TYPE_CHECKING:
    from ropewalk.core.execution.trail import Trail

DEFAULT_CONCURRENCY = 20
DEFAULT_ATTEMPT_TIMEOUT = 5 * MINUTE
"""For attempts of nodes that set none; waits have none by default."""

# What decides a node's work. Retry, timeout, name and drawing may change without making its result another one.
WORK_FIELDS = ("type", "with", "forEach", "repeat", "pool", "credentials")


class Tolerance(Struct, frozen=True, gc=False):
    """How many items of a map may fail: a count, or a share in hundredths of a percent."""

    count: int = 0
    share: int = 0

    def of(self, items: int) -> int:
        """The number of failures among so many items that still makes a success."""
        return self.count + items * self.share // 10_000


NO_TOLERANCE = Tolerance()


class Plan:
    """What an execution needs to know about its workflow, answered in O(1) per node or edge."""

    __slots__ = (
        "_config_hashes", "_inputs", "cache_ttl", "cancel_on_failure", "compensations", "concurrency",
        "concurrency_key", "definition", "error_ways", "followers", "for_each", "goes_on", "has_closing",
        "has_error_edge", "has_maps", "ids", "indegree", "index", "keeps_letters", "last", "max_parallel",
        "order", "ordinary", "output", "pools", "port_names", "ports", "rate_limits", "repeats", "retries",
        "retry_when", "roots", "sinks", "stop_on_failure", "targets", "timeout", "timeouts", "tolerance",
        "trail", "types",
    )  # fmt: skip

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self._take_topology()
        self._take_nodes(definition.nodes)
        self._take_settings(definition.document)
        # By node, of those whose runs were asked for a key.
        self._config_hashes: dict[int, str] = {}
        # The way its executions go; made when it is first gone.
        self.trail: Trail | None = None

    def _take_topology(self) -> None:
        topology = self.definition.topology
        self.targets = topology.targets
        self.ports = topology.ports
        self.port_names = topology.port_names
        self.has_error_edge = topology.has_error_edge
        self.indegree = topology.indegree
        # The ways on from a failure, of the nodes whose error edges ask which failure it is.
        self.error_ways = error_ways(self.definition.edges, self.definition.index)
        self.order = topology.order
        self.roots = topology.roots
        self.sinks = topology.sinks
        # Who may start when a node succeeds, in document order; None where that depends on the ports it takes.
        self.followers = [
            None if names else tuple(sorted(targets)) if len(targets) > 1 else targets
            for targets, names in zip(self.targets, self.port_names, strict=True)
        ]
        self._take_closing(self.definition.ordinary)

    def _take_closing(self, ordinary: int) -> None:
        """Tell the nodes of the graph from those that close an execution, which have the numbers after them."""
        index = self.definition.index
        self.ordinary = ordinary
        self.has_closing = len(index) > ordinary
        # Which node undoes which; and the nodes of `finally`.
        self.compensations: dict[int, int] = {}
        self.last: tuple[int, ...] = ()
        if self.has_closing:
            self.roots = [node for node in self.roots if node < ordinary]
            self.sinks = tuple(node for node in self.sinks if node < ordinary)
            undoing = {name.removesuffix(UNDOES): i for name, i in index.items() if name.endswith(UNDOES)}
            self.compensations = {index[name]: i for name, i in undoing.items()}
            self.last = tuple(range(ordinary, len(index) - len(undoing)))

    def _take_nodes(self, nodes: list[dict[str, Any]]) -> None:
        size = len(nodes)
        self.index = self.definition.index
        self.ids: tuple[str, ...] = tuple(self.index)
        self.types: list[str] = [node["type"] for node in nodes]
        self.retries: list[RetryPolicy] = [DEFAULT_RETRY] * size
        # What must be true of a failed attempt for another to follow, of the nodes that say so.
        self.retry_when: dict[int, Template] = {}
        self.timeouts: list[int | None] = [None] * size
        self.for_each: list[Template | None] = [None] * size
        self.concurrency: list[int] = [DEFAULT_CONCURRENCY] * size
        self.tolerance: list[Tolerance] = [NO_TOLERANCE] * size
        # Of a map: whether it tries every item also after failures, and whether tolerated failures are dead letters
        # too.
        self.goes_on = bytearray(size)
        self.keeps_letters = bytearray(size)
        # How long a node's results may be used again by the same work, if at all (µs).
        self.cache_ttl: list[int | None] = [None] * size
        self.pools: list[str | None] = [None] * size
        self.rate_limits: list[str | None] = [None] * size
        # How the nodes go on that are repeated.
        self.repeats: dict[int, Repeat] = {}
        self._inputs: list[Template | None] = [None] * size
        for i, node in enumerate(nodes):
            if len(node) > 2:
                self._take_options(i, node)
        self.has_maps = any(each is not None for each in self.for_each)

    def _take_options(self, i: int, node: dict[str, Any]) -> None:
        if "retry" in node:
            self.retries[i] = retry_policy(node["retry"])
            if "when" in node["retry"]:
                self.retry_when[i] = compile_template(node["retry"]["when"])
        if "repeat" in node:
            self.repeats[i] = repeat_of(node["repeat"])
        if "timeout" in node:
            self.timeouts[i] = parse_duration(node["timeout"])
        if "forEach" in node:
            self.for_each[i] = compile_template(node["forEach"])
        if "concurrency" in node:
            self.concurrency[i] = node["concurrency"]
        if "failureTolerance" in node:
            self.tolerance[i] = parse_tolerance(node["failureTolerance"])
        self.goes_on[i] = node.get("onItemFailure") == "continue"
        self.keeps_letters[i] = node.get("deadLetters") == "always"
        if "cache" in node:
            self.cache_ttl[i] = parse_duration(node["cache"]["ttl"])
        if "pool" in node:
            self.pools[i] = node["pool"]
        if "rateLimit" in node:
            self.rate_limits[i] = node["rateLimit"]

    def _take_settings(self, document: dict[str, Any]) -> None:
        self.output: Template | None = _optional_template(document, "output")
        self.concurrency_key: Template | None = _optional_template(document, "concurrencyKey")
        self.timeout: int | None = parse_duration(document["timeout"]) if "timeout" in document else None
        self.stop_on_failure: bool = document.get("onFailure") in ("stop", "cancel")
        self.cancel_on_failure: bool = document.get("onFailure") == "cancel"
        self.max_parallel: int | None = document.get("maxParallel")

    def __len__(self) -> int:
        return len(self.ids)

    def with_template(self, i: int) -> Template:
        """The node's `with`, compiled at its first use: most executions of a large workflow see a part of it."""
        template = self._inputs[i]
        if template is None:
            template = self._inputs[i] = compile_template(self.definition.nodes[i].get("with", {}))
        return template

    @property
    def is_timely(self) -> bool:
        """Whether a node's `with` gives something else each time it is evaluated."""
        return any(self.with_template(i).is_timely for i in range(len(self)))

    def config_hash(self, i: int) -> str:
        """The same for two nodes, of any version, that do the same work with the same inputs."""
        known = self._config_hashes.get(i)
        if known is None:
            node = self.definition.nodes[i]
            known = content_hash({field: node[field] for field in WORK_FIELDS if field in node})
            self._config_hashes[i] = known
        return known

    def credentials(self, i: int) -> str | dict[str, str] | None:
        """The credentials the node names: one, or several by slot."""
        named: str | dict[str, str] | None = self.definition.nodes[i].get("credentials")
        return named

    def has_retry(self, i: int) -> bool:
        """Whether the node itself says how it is retried; only then a failed child is."""
        return "retry" in self.definition.nodes[i]

    def error_port(self, i: int, edge: int | None) -> str:
        """The port of the error edges that a handled failure takes; `edge` is their first, where it had to choose."""
        return next((way.port for way in self.error_ways.get(i, ()) if way.edge == edge), ERROR_PORT)

    def tolerated(self, i: int, items: int) -> int:
        """How many of so many items of a map may fail."""
        return self.tolerance[i].of(items)

    def predecessors(self, i: int) -> tuple[int, ...]:
        """The sources of the edges into a node, each once, in document order."""
        return self.definition.topology.predecessors(i)


def compile_plan(definition: Definition) -> Plan:
    """The plan of a checked definition; cannot fail for one."""
    return Plan(definition)


def load_plan(document: bytes) -> Plan:
    """The plan of a stored definition, whose rules were checked when it was saved; VersionLost if it is damaged."""
    try:
        return Plan(Definition(msgspec.json.decode(document, type=dict[str, Any])))
    except Exception as error:
        raise VersionLost(f"the stored version of the workflow is damaged ({error})") from error


def retry_policy(retry: dict[str, Any]) -> RetryPolicy:
    """The policy a node's `retry` describes; a delay above the default's longest raises the longest with it."""
    delay = parse_duration(retry.get("delay", 1))
    longest = parse_duration(retry["maxDelay"]) if "maxDelay" in retry else max(DEFAULT_RETRY.max_delay, delay)
    return RetryPolicy(
        max_attempts=retry.get("maxAttempts", DEFAULT_RETRY.max_attempts),
        delay=delay,
        factor=float(retry.get("factor", DEFAULT_RETRY.factor)),
        max_delay=longest,
        jitter=float(retry.get("jitter", DEFAULT_RETRY.jitter)),
        on=tuple(retry["on"]) if "on" in retry else None,
    )


def parse_tolerance(value: JSON) -> Tolerance:
    """The tolerance written as a count or as a share like `12.5%`."""
    if isinstance(value, int):
        return Tolerance(count=value)
    whole, _, fraction = value.removesuffix("%").partition(".")
    return Tolerance(share=int(whole) * 100 + int(fraction.ljust(2, "0") or 0))


def _optional_template(document: dict[str, Any], field: str) -> Template | None:
    return compile_template(document[field]) if field in document else None
