"""`make demo`: four things that go wrong, and what becomes of them; then the service, by curl. Every step is real."""

import asyncio
import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ropewalk.bench.server import running
from ropewalk.store import workers
from ropewalk.store.errors import IncompatibleStore, NoStore
from ropewalk.store.postgres import PostgresReader
from tools import demo_curl

PATIENCE = 30.0
STEPS = 10
KILLED_AFTER = 5

NODES = '''
"""Node types of the demo. What they do to the outside world is a line in a ledger."""

import asyncio
import os
from pathlib import Path

from ropewalk import NodeContext, NodeFailure, node


def effect(context: NodeContext) -> None:
    with Path("ledger.txt").open("a") as ledger:
        ledger.write(f"{context.node} {context.attempt} {context.idempotency_key[:12]} {os.getpid()}\\n")


@node
async def ask(shop: str, context: NodeContext) -> int:
    """Asks a shop for a price; the second one does not answer at first."""
    await asyncio.sleep(0.4)
    if shop == "second" and context.attempt < 3:
        raise ConnectionError("no answer")
    return len(shop)


@node
async def step(context: NodeContext) -> str:
    """Does something that cannot be undone, then needs a moment to report it."""
    effect(context)
    await asyncio.sleep(0.25)
    return context.node


@node
def charge(card: str, amount: int, context: NodeContext) -> str:
    """Charges a card, unless it has expired."""
    if card.endswith("/20"):
        raise NodeFailure.permanent(f"the card {card} has expired")
    effect(context)
    return f"{amount} charged to {card}"
'''

PRICES = """
ropewalk: 1
name: prices
nodes:
  - { id: first, type: ask, with: { shop: first } }
  - { id: second, type: ask, with: { shop: second }, retry: { maxAttempts: 5, delay: 300ms } }
  - { id: third, type: ask, with: { shop: third } }
  - id: best
    type: set
    with: { values: { price: "{{ min([nodes.first.output, nodes.second.output, nodes.third.output]) }}" } }
edges:
  - { from: first, to: best }
  - { from: second, to: best }
  - { from: third, to: best }
"""

ORDER = """
ropewalk: 1
name: order
nodes:
  - { id: reserve, type: set, with: { values: { seats: 2 } } }
  - { id: pay, type: charge, with: { card: "4000-01/20", amount: 120 } }
  - { id: send, type: log, with: { message: "tickets sent: {{ nodes.pay.output }}" } }
edges:
  - { from: reserve, to: pay }
  - { from: pay, to: send }
output: "{{ nodes.pay.output }}"
"""


def chain() -> str:
    nodes = [f"  - {{ id: step{number}, type: step }}" for number in range(1, STEPS + 1)]
    edges = [f"  - {{ from: step{number}, to: step{number + 1} }}" for number in range(1, STEPS)]
    return "\n".join(["ropewalk: 1", "name: steps", "nodes:", *nodes, "edges:", *edges])


def say(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "ropewalk", *words]


def ropewalk(*words: str, expected: int = 0) -> None:
    """Carry a command out in front of everyone; the demo stops if it does not end as it should."""
    print(f"$ {shlex.join(['ropewalk', *words])}", flush=True)
    code = subprocess.run(command(*words), check=False).returncode
    if code != expected:
        sys.exit(f"expected exit code {expected}, got {code}")


def asked(*words: str) -> Any:
    """What a command answers with --json."""
    return json.loads(subprocess.run(command(*words, "--json"), check=True, stdout=subprocess.PIPE).stdout)


def ledger() -> list[list[str]]:
    path = Path("ledger.txt")
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def parallel_with_retry() -> None:
    say("1. Three shops are asked at the same time. One does not answer at first; it is asked again, the others go on.")
    ropewalk("run", "prices.yaml")


def killed_and_resumed() -> None:
    say(f"2. {STEPS} steps, each with an effect that cannot be undone. After {KILLED_AFTER} effects: kill -9.")
    print("$ ropewalk run steps.yaml", flush=True)
    with subprocess.Popen(command("run", "steps.yaml"), start_new_session=True) as process:
        wait_for_effects([process])
        os.killpg(process.pid, signal.SIGKILL)
    say(f"Killed. {len(ledger())} effects so far; the log says where to go on.")
    ropewalk("explain", "last")
    ropewalk("resume", "last")
    count_effects()


def wait_for_effects(processes: list[subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + PATIENCE
    while len(ledger()) < KILLED_AFTER:
        if any(process.poll() is not None for process in processes) or time.monotonic() > deadline:
            sys.exit("the steps ended before they could be killed")
        time.sleep(0.01)


def count_effects() -> None:
    """Every result recorded once; the effect that was under way may have happened twice, under the same key."""
    shown = asked("executions", "show", "last")
    recorded = Counter(run["node"] for run in shown["runs"] if run["state"] == "SUCCESS")
    effects = Counter(node for node, *_ in ledger())
    repeated = [node for node, count in effects.items() if count > 1]
    say(f"{len(recorded)} results recorded, each once: {set(recorded.values()) == {1}}. Effects: {effects.total()}.")
    if len(recorded) != STEPS or set(recorded.values()) != {1} or len(repeated) > 1:
        sys.exit("that is not what was promised")
    for node in repeated:
        tries = [(attempt, key) for each, attempt, key, _ in ledger() if each == node]
        print(f"{node} was under way when the process died, so it was done again: attempts {_told(tries)}")
    print("Nodes run at least once, results are recorded once, stale writers are refused.")


def _told(tries: list[tuple[str, str]]) -> str:
    attempts = " and ".join(attempt for attempt, _ in tries)
    is_same = len({key for _, key in tries}) == 1
    return f"{attempts}, {'the same idempotency key' if is_same else 'other keys'} ({tries[0][1]}…)"


def dead_letter_requeued() -> None:
    say("3. A card has expired: trying again would not help, so the run becomes a dead letter.")
    ropewalk("run", "order.yaml", expected=1)
    failed = asked("executions", "show", "last")["id"]
    ropewalk("dlq", "show", "last")
    say("Someone asks the customer for another card, changes the input, and puts the letter back.")
    ropewalk("dlq", "requeue", "last", "--set", 'card="4000-01/30"')
    shown = asked("executions", "show", "last")
    say(f"The same execution has finished: {shown['state']}, {shown['id'] == failed and 'same id'}.")
    ropewalk("executions", "show", "last")


def fleet() -> None:
    say("4. The same steps on PostgreSQL, with two workers. The one that has them in hand is killed.")
    Path("ledger.txt").unlink()
    with running(tempfile.gettempdir()) as os.environ["ROPEWALK_DB"], two_workers() as both:
        ropewalk("run", "steps.yaml", "--detach")
        wait_for_effects(both)
        owner = next(worker for worker in both if str(worker.pid) == ledger()[-1][-1])
        owner.kill()
        say(f"Process {owner.pid} is dead. The other worker notices, and goes on where the log ends.")
        ropewalk("executions", "events", "last", "--follow")
        ropewalk("executions", "show", "last")
        count_effects()
        ropewalk("workers")
        ropewalk("check")


@contextlib.contextmanager
def two_workers() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two workers that have joined; those left at the end are told to leave."""
    words = ["worker", "--lease", "5"]
    print(f"$ {shlex.join(['ropewalk', *words])} &\n" * 2, end="", flush=True)
    with subprocess.Popen(command(*words)) as first, subprocess.Popen(command(*words)) as second:
        try:
            wait_for_workers()
            yield [first, second]
        finally:
            for worker in (first, second):
                worker.terminate()


def wait_for_workers() -> None:
    deadline = time.monotonic() + PATIENCE
    while asyncio.run(count_workers()) < 2:
        if time.monotonic() > deadline:
            sys.exit("the workers did not join")
        time.sleep(0.05)


async def count_workers() -> int:
    try:
        reader = await PostgresReader.open(os.environ["ROPEWALK_DB"])
    except (NoStore, IncompatibleStore):
        return 0  # the first of them has yet to make the tables
    try:
        return len(await workers.listed(reader))
    finally:
        await reader.close()


def main() -> None:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ropewalk-demo-") as folder, contextlib.chdir(folder):
        for name, content in {
            "nodes.py": NODES,
            "prices.yaml": PRICES,
            "steps.yaml": chain(),
            "order.yaml": ORDER,
        }.items():
            Path(name).write_text(content.lstrip(), encoding="utf-8")
        Path("ropewalk.toml").write_text('nodes = ["nodes.py"]\n', encoding="utf-8")
        parallel_with_retry()
        killed_and_resumed()
        dead_letter_requeued()
        say("Every log and every table of the store, held to the guarantees:")
        ropewalk("check")
        fleet()
        del os.environ["ROPEWALK_DB"]
        say("5. The service: a workflow created, published, started and followed with nothing but curl.")
        demo_curl.show(command(), "prices.yaml")
    say(f"That was {time.monotonic() - began:.0f} seconds. `ropewalk init` makes a project of your own.")


if __name__ == "__main__":
    main()
