"""Watches over the shared store: what must be true of every commit, judged before it counts.

The judgement at the end of a history reads what is left; who wrote it, and what was true in between, only shows here.
"""

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ropewalk.core import log
from ropewalk.core.events import RunFailed
from ropewalk.store.access import Value
from ropewalk.store.events import NO_ITEM

TELLING = {"ask_inbox": "asked another", "end_offer": "run elsewhere", "take_over_live": "taken over"}
"""Statements by which it shows that something worth simulating has happened."""
REPORTS = ("Succeeded", "Failed", "Suspended", "Returned")
VERBS = ("Pause", "Resume", "Cancel", "Retry")
SENT = "select id, execution, json_extract(signal, '$.type') from inbox where id = ?"
OLDER = (
    "select older.id from inbox as older inner join inbox as letter on letter.execution = older.execution "
    "where letter.id = ? and (older.sent_at, older.id) < (letter.sent_at, letter.id) and older.wants_answer = 0 "
    "and json_extract(older.signal, '$.type') in ('Pause', 'Resume', 'Cancel', 'Retry')"
)
"""What a parent told a child before."""


class Watch:
    """Keeps what was wrong, so that nothing that the engine does about it can hide it."""

    def __init__(self, connection: sqlite3.Connection, limits: Mapping[str, int], sometimes: Counter[str]) -> None:
        self._connection = connection
        self._sometimes = sometimes
        self._limits = limits
        self._leased: dict[str, None] = {}
        # To whom letters were thrown away, since there was nobody of that name.
        self._unheard: dict[str, str] = {}
        self._doubted: list[tuple[str, str, str]] = []
        self._is_about_living = False
        self.wrong: list[str] = []
        # Whom the retention has taken, or would have.
        self.removed: set[str] = set()

    def begin(self) -> None:
        """A transaction has begun; what became of the last one is known."""
        self._leased.clear()
        self._doubted.clear()

    def look_at(self, worker: str, name: str, rows: Sequence[Sequence[Value]]) -> None:
        """A worker is about to carry out this statement."""
        self._is_about_living = self._is_about_living or name.endswith("_live")
        if name in TELLING:
            self._sometimes[TELLING[name]] += 1
        match name:
            case "insert_log":
                for execution, seq, entry in rows:
                    self._check_owner(worker, execution, seq)
                    self._check_lost(execution, entry)
            case "expect_live":
                for execution, _ in rows:
                    self._check_owner(worker, execution, "expected")
            case "end_offer":
                for row in rows:
                    self._look_at_report(*row)
            case "expired_offers":
                for now, _ in rows:
                    self._look_at_expired(now)
            case "insert_inbox":
                for row in rows:
                    self._check_report(worker, row)
                    self._look_at_start(row)
            case "delete_inbox":
                for (letter,) in rows:
                    self._check_told_once(worker, letter)
                    self._check_turn(worker, letter)
            case "forget_inbox" | "forget_unless_coming":
                for letter, *_ in rows:
                    self._doubted += self._ask(SENT, letter)
            case "remove_execution":
                self.removed.update(str(execution) for (execution,) in rows)
            case "insert_execution":
                for execution, *_ in rows:
                    self._check_hears(execution)

    def _check_owner(self, worker: str, execution: Value, seq: Value) -> None:
        """Only the owner writes the log."""
        if seq == 1:
            return
        owner = self._ask("select owner from live where execution = ?", execution)
        if owner != [(worker,)]:
            self.wrong.append(f"{worker} writes event {seq!r} of {execution!r}, which is in the hands of {owner}")

    def _check_lost(self, execution: Value, entry: Value) -> None:
        """A run that another has, or may take, is not lost with its owner."""
        assert isinstance(entry, bytes), "an entry of a log is bytes"
        for event in log.decode(entry)[1]:
            if isinstance(event, RunFailed) and event.lost:
                place = NO_ITEM if event.item is None else event.item
                run = (execution, event.node, place, event.attempt)
                if self._ask("select 1 from offer where execution = ? and node = ? and item = ? and attempt = ?", *run):
                    self.wrong.append(f"{run} is told to be lost, and is not")

    def _check_told_once(self, worker: str, letter: Value) -> None:
        """A letter goes with the events it causes, once."""
        if not self._ask("select 1 from inbox where id = ?", letter):
            self.wrong.append(f"{worker} has told the letter {letter!r}, which was told before")

    # What a parent tells its children

    def _check_turn(self, worker: str, letter: Value) -> None:
        """It is told in the order it was said."""
        for _, _, said in self._ask(SENT, letter):
            if said in VERBS and (older := self._ask(OLDER, letter)):
                self.wrong.append(f"{worker} has told the letter {letter!r} before {older}")

    def _remember_thrown_away(self, worker: str) -> None:
        """Nobody was there who could be told; whoever is started anew needs no retry."""
        for letter, execution, said in self._doubted:
            if said in VERBS[:-1] and not self._ask("select 1 from inbox where id = ?", letter):
                self._unheard[execution] = f"{worker} has thrown away the {said} it was to be told"

    def _look_at_start(self, row: Sequence[Value]) -> None:
        """What was said before is not for one that is called for again."""
        signal = msgspec.json.decode(str(row[2]))
        if signal["type"] == "StartChild":
            self._unheard.pop(signal["wait"]["child"], None)

    def _check_hears(self, execution: Value) -> None:
        if execution in self._unheard:
            self.wrong.append(f"{execution!r} comes to be, and {self._unheard[str(execution)]}")

    # Reports of runs that were leased

    def _look_at_report(self, *about: Value) -> None:
        question = (
            "select execution, node, attempt from offer "
            "where id = ? and leased_by = ? and fence = ? and lease_until >= ?"
        )
        for row in self._ask(question, *about):
            self._leased[str(row)] = None

    def _look_at_expired(self, now: Value) -> None:
        """Whoever ends a lease says how the run ended: lost, or past its time limit."""
        for row in self._ask("select execution, node, attempt from offer where lease_until < ?", now):
            self._leased[str(row)] = None

    def _check_report(self, worker: str, row: Sequence[Value]) -> None:
        """A run is reported by whoever has it."""
        signal = msgspec.json.decode(str(row[2]))
        if signal["type"] in REPORTS:
            run = str((row[1], signal["node"], signal["attempt"]))
            if run not in self._leased:
                self.wrong.append(f"{worker} reports the run {run}, which it has not")

    # The whole

    def before_commit(self, worker: str, epoch: int) -> None:
        """Everything is written and nothing counts yet."""
        self._remember_thrown_away(worker)
        current = self._ask("select epoch from worker where id = ?", worker)
        if current != [(epoch,)]:
            self.wrong.append(f"a write of {worker} under epoch {epoch} was taken, its epoch is {current}")
        if self._is_about_living:
            self._is_about_living = False
            self._check_limits()
            self._check_keys()

    def _check_limits(self) -> None:
        for workspace, taken in self._ask("select workspace, count(*) from live where has_slot = 1 group by workspace"):
            limit = self._limits.get(workspace)
            if limit is not None and taken > limit:
                self.wrong.append(f"I-27 {taken} slots of workspace {workspace} are taken, {limit} may be")

    def _check_keys(self) -> None:
        for key, holders in self._ask("select concurrency_key, count(*) from live where has_key > 0 "
                                      "group by workspace, concurrency_key, has_key having count(*) > 1"):  # fmt: skip
            self.wrong.append(f"I-28 key {key!r} has {holders} holders")

    def _ask(self, question: str, *arguments: Value) -> list[tuple[Any, ...]]:
        return self._connection.execute(question, arguments).fetchall()
