"""A workspace in which every value known only at run time holds one text, and executions of it in every state."""

import base64
from itertools import product
from urllib.parse import quote

from msgspec import Struct

from ropewalk.api.nouns.metrics import ServerMetrics
from ropewalk.core.breaker import Breaker, BreakerState
from ropewalk.core.duration import HOUR
from ropewalk.core.events import RunFailed, RunWaiting
from ropewalk.core.expression import ExpressionError, compile_expression
from ropewalk.core.expression.functions import FUNCTIONS
from ropewalk.service.metrics import Sampler
from ropewalk.store import breakers
from ropewalk.telemetry.metrics import Metrics
from tests.api.samples import A_FILE, CONTENT
from tests.api.stories import EXECUTIONS, LETTERS, Json, Town
from tests.engines.worlds import ONCE, flow, node
from tests.store.samples import meddle

CANARY = "canary7q3x"
GIVEN = {
    "c": CANARY,
    "n": 3,
    "list": [CANARY, CANARY],
    "object": {CANARY: CANARY},
    "regex": f"({CANARY}",
    "date": f"2026-{CANARY}",
}
C = "{{ input.c }}"
URL = f"http://{C}.invalid/{C}"
SLOWLY = {"maxAttempts": 9, "delay": "1h", "jitter": 0}
OPERATORS = (
    "input.c + 1", "input.c - 1", "-input.c", "input.c * input.c", "input.c / 0", "input.c % 2", "input.c < 1",
    "input.list[input.c]", "input.object[input.n]", "input.c and 1", "not input.c", "input.c ? 1 : 2", "input.c in 3",
    "input.c[0:9]", "input.n.x",
)  # fmt: skip


def forms(text: str = CANARY) -> list[str]:
    """The text as an answer might hold it: as it is, backwards, in hex, in percents, in base64 wherever it begins."""
    raw = text.encode()
    whole = [base64.b64encode(b"\0" * ahead + raw).decode().rstrip("=") for ahead in range(3)]
    # The first and last characters depend on what stands beside it.
    inner = [each[-(-8 * ahead // 6) : 8 * (ahead + len(raw)) // 6] for ahead, each in enumerate(whole)]
    percents = "".join(f"%{byte:02x}" for byte in raw)
    return [text, text[::-1], raw.hex(), percents, quote(text), *inner]


def is_in(answer: str) -> bool:
    """Whether an answer holds the text in any form; base64 alone depends on the case of letters."""
    lower = answer.lower()
    return any(form in answer or (form.lower() == form and form in lower) for form in forms())


# The workflows


def _calls() -> list[str]:
    """Every function with every kind of argument, as far as it can be written."""
    found = []
    for function in FUNCTIONS.values():
        for count in {function.required, len(function.parameters)}:
            for first, others in product(GIVEN, repeat=2):
                arguments = [f"input.{first}", *[f"input.{others}"] * (count - 1)][:count]
                found.append(f"{function.name}({', '.join(arguments)})")
    return [each for each in dict.fromkeys((*found, *OPERATORS)) if _compiles(each)]


def _compiles(source: str) -> bool:
    try:
        compile_expression(source)
    except ExpressionError:
        return False
    return True


def _tried(calls: list[str]) -> Json:
    nodes = [node(f"n{place}", "noop", value=f"{{{{ {call} }}}}", retry=ONCE) for place, call in enumerate(calls)]
    return flow(*nodes, name="functions")


SUCCEEDS = flow(
    node("made", "set", values={"x": C, "y": [C]}),
    node("chosen", "switch", value=C, cases=[{"port": C, "equals": C}]),
    node("told", "log", message=C, fields={"x": C}),
    node("each", "noop", value="{{ item }}", forEach="{{ input.list }}"),
    edges="made->chosen chosen->each",
    name="succeeds",
    vars={"v": "public"},
    output="{{ nodes.made.output }}",
)
FAILS = flow(
    node("fail", "fail", message=f"no {C}"),
    node("late", "fail", message=f"no {C}", type="TIMEOUT", retry=ONCE),
    node("handled", "fail", message=f"no {C}"),
    node("after", "set", values={"x": "{{ nodes.handled.error.message }}"}),
    node("items", "fail", message="no {{ item }}", forEach="{{ input.list }}"),
    node("tolerated", "fail", message="no {{ item }}", forEach="{{ input.list }}", failureTolerance=9),
    node("list", "noop", forEach="{{ input.c }}"),
    node("function", "python", function=C, args={"x": C}),
    node("host", "http.request", url=URL, headers={"X-Key": C}, retry=ONCE),
    node("address", "http.request", url=C, retry=ONCE),
    node("mail", "email.send", to=C, text=C, smtp={"host": f"{C}.invalid"}, **{"from": "a@b.example"}, retry=ONCE),
    node("server", "email.send", to="a@b.example", text=C, smtp={"host": f"{C}.invalid"}, retry=ONCE,
         **{"from": "a@b.example"}),
    node("traced", "act", fails=9, message="no luck", body=C, retry=ONCE),
    node("raised", "act", fails=9, message=C, retry=ONCE),
    node("traced_items", "act", fails=9, message="{{ item }}", body="{{ item }}", forEach="{{ input.list }}",
         retry=ONCE),
    node("child", "subworkflow", workflow=C, input=C),
    node("moment", "wait", until=C),
    node("subject", "wait", event=f"{C} {C}"),
    node("pause", "delay", **{"for": C}),
    node("merged", "merge", values=[C], mode=C),
    edges="handled->after:error",
    name="fails",
)  # fmt: skip
WAITS = flow(
    node("ask", "approval", title=f"Pay {C}?", details={"of": C}),
    node("asks", "approval", title="Pay {{ item }}?", forEach="{{ input.list }}"),
    node("event", "wait", event=f"order.{C}"),
    node("filtered", "wait", event="order.paid", filter="item.code == input.c"),
    node("signal", "wait", signal=C),
    node("child", "subworkflow", workflow="inner", input=C),
    node("again", "http.request", url=f"http://again-{C}.invalid/", retry=SLOWLY),
    node("held", "http.request", url=f"http://held-{C}.invalid/"),
    node("traced", "act", fails=9, message="no luck", body=C, retry=SLOWLY),
    name="waits",
)
INNER = flow(node("ask", "approval", title="{{ input }}"), name="inner")
OVERDUE = flow(node("ask", "approval", title=C), name="overdue", timeout="1ms")
KEYED = flow(node("ask", "approval", title=C), name="keyed", concurrencyKey=C)
PARENT = flow(node("child", "subworkflow", workflow="keyed", input="{{ input }}"), name="parent")
ONE_TITLE = flow(node("ask", "approval", title=C), name="asked")


class Found(Struct, frozen=True):
    """What there is to ask about, by id."""

    workflows: dict[str, str]
    executions: dict[str, str]
    runs: dict[str, str]
    """The runs, and the execution of each."""
    letters: list[str]
    trigger: str


class Canaries:
    """Fills a town."""

    def __init__(self, town: Town) -> None:
        self._town = town
        self._executions: dict[str, str] = {}

    async def fill(self) -> Found:
        town = self._town
        town.backend.metrics = ServerMetrics(Metrics(), Sampler(town.backend.store))
        workflows = {each["name"]: await town.save(each) for each in (INNER, KEYED)}
        await self._break("held")
        await self._over("functions", _tried(_calls()))
        await self._over("succeeds", SUCCEEDS)
        await self._file()
        await self._over("fails", FAILS)
        await self._wait("waits", WAITS, 9)
        await self._stop()
        await self._queue()
        await self._work_off_letters()
        await self._again()
        await self._damage()
        listed = (await town.get("/workflow/definitions?limit=200"))["items"]
        return Found(workflows | {each["name"]: each["id"] for each in listed}, self._executions, await self._runs(),
                     await self._letters(), await self._trigger())  # fmt: skip

    async def _trigger(self) -> str:
        """A trigger that was fired under a telling key, and whose input could not be made of what had happened."""
        service = self._town.backend.service("default")
        settings = {"every": "1h", "name": "hourly", "input": "{{ number(event.said) }}"}
        made = await service.triggers.create(KEYED["name"], settings, "test")
        await service.triggers.fire(made["id"], {"said": CANARY}, "test", key=CANARY)
        return str(made["id"])

    async def _over(self, name: str, document: Json) -> None:
        service = self._town.backend.service("default")
        overrides = {"v": CANARY} if document.get("vars") else None
        execution = await service.start(await service.save(document), GIVEN, overrides)
        await service.ended(execution)
        self._executions[name] = execution

    async def _file(self) -> None:
        """An execution that names a file."""
        await self._town.tell("/workflow/files", content=CONTENT)
        about = {**A_FILE["$file"], "name": f"{CANARY}.txt"}
        self._executions["file"] = await self._town.run(flow(node("a"), name="filed"), {"$file": about})

    async def _wait(self, name: str, document: Json, count: int = 1) -> str:
        """An execution that has come to so many waits."""
        self._executions[name] = execution = await self._town.start(document, GIVEN)
        async for _, event in self._town.service.follow(execution):
            count -= isinstance(event, RunWaiting | RunFailed)
            if not count:
                break
        return execution

    async def _break(self, name: str) -> None:
        town, target = self._town, f"http.request http://{name}-{CANARY}.invalid"
        store = town.backend.store
        for each in (target, f"another {CANARY}"):
            async with store.transaction() as tx:
                opened = Breaker(BreakerState.OPEN, 5, opened_at=store.now(), next_retry=store.now() + HOUR)
                await breakers.put(tx, "default", each, opened)
        await town.service.engine.breakers.load()

    async def _stop(self) -> None:
        """Ended by people and by time."""
        service = self._town.service
        await service.cancel(await self._wait("cancelled", {**ONE_TITLE, "name": "cancelled"}), "test", f"no {CANARY}")
        await service.pause(await self._wait("paused", {**ONE_TITLE, "name": "paused"}), "test", f"no {CANARY}")
        self._executions["overdue"] = overdue = await self._town.start(OVERDUE, GIVEN)
        await service.ended(overdue)
        told = await self._wait("told", {**ONE_TITLE, "name": "told"})
        await service.signal(told, CANARY, CANARY, "test")
        await service.publish(f"order.x.{CANARY}", {"of": CANARY}, "test")
        answered = await self._wait("answered", {**ONE_TITLE, "name": "answered"})
        await service.decide(answered, "ask", approved=True, payload=CANARY)
        given_up = await self._wait("given up", {**ONE_TITLE, "name": "given_up"})
        await service.give_up(given_up, "ask", None, "test", f"no {CANARY}")

    async def _queue(self) -> None:
        """Held by a key, and undispatched for a reason."""
        town, store = self._town, self._town.backend.store
        await self._wait("keyed", KEYED)
        self._executions["held by key"] = await town.start(KEYED, GIVEN)
        await self._wait("parent", PARENT)
        for name, state in (("postponed", "PENDING"), ("undispatched", "FAILED")):
            self._executions[name] = execution = await town.start(KEYED, GIVEN)
            async with store.transaction() as tx:
                await tx.execute("return_queue", state, store.now() + HOUR, 3, f"no {CANARY}", execution)

    async def _work_off_letters(self) -> None:
        """Of an execution that failed three times alike: one requeued, one fixed, one discarded."""
        town = self._town
        await self._over("worked off", {**FAILS, "name": "worked_off"})
        of_it = {each["node"]: each["id"] for each in await self._listed(self._executions["worked off"])}
        await town.service.note(of_it["fail"], f"see {CANARY}", "test")
        await town.service.discard(of_it["fail"], "test", f"see {CANARY}")
        await town.service.requeue(of_it["function"], {"function": f"{CANARY}2"}, "test")
        await town.service.ended(self._executions["worked off"])
        await town.service.fix(of_it["list"], {"x": CANARY}, "test")
        await town.service.ended(self._executions["worked off"])

    async def _again(self) -> None:
        service = self._town.service
        self._executions["replayed"] = await service.replay(self._executions["succeeds"], "test")
        self._executions["rerun"] = await service.rerun(self._executions["succeeds"], "each", "test")
        for name in ("replayed", "rerun"):
            await service.ended(self._executions[name])

    async def _damage(self) -> None:
        """A log whose reader quotes what it cannot read."""
        execution = await self._wait("damaged", {**ONE_TITLE, "name": "damaged"})
        events = [{"type": CANARY, "at": 1}]
        entry = f'{{"v":2,"seq":2,"events":{str(events).replace(chr(39), chr(34))}}}'.encode().hex()
        await meddle(self._town.service.store, f"update log set entry = x'{entry}' where execution = '{execution}' "
                     "and seq > 1")  # fmt: skip

    async def _listed(self, execution: str) -> list[Json]:
        found = await self._town.get(f"{LETTERS}?limit=200&resolution=PENDING&executionId={execution}")
        return list(found["items"])

    async def _letters(self) -> list[str]:
        found = [each["id"] for each in (await self._town.get(f"{LETTERS}?limit=200&node=fail"))["items"]]
        for name in ("fails", "worked off", "given up"):
            path = f"{LETTERS}?limit=200&executionId={self._executions[name]}"
            found += [each["id"] for each in (await self._town.get(path))["items"]]
        return list(dict.fromkeys(found))

    async def _runs(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, execution in self._executions.items():
            if name not in ("functions", "damaged"):
                listed = await self._town.get(f"{EXECUTIONS}/{execution}/runs?limit=200")
                found |= {each["id"]: execution for each in listed["items"]}
        return found
