"""What became of each node of a workflow of n8n, and why."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from msgspec import Struct


class Fidelity(StrEnum):
    """How much of a node is left."""

    EXACT = "exact"
    APPROXIMATED = "approximated"
    STUB = "stub"
    UNSUPPORTED = "unsupported"


class Entry(Struct):
    """One node of the original: what it became, and what is different."""

    node: str
    type: str
    fidelity: Fidelity
    ids: list[str]
    reasons: list[str]

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        about = {"node": self.node, "type": self.type, "fidelity": str(self.fidelity)}
        return {**about, "became": self.ids, "reasons": self.reasons}


class Report(Struct):
    """Everything that a reader of the new workflow has to know."""

    entries: list[Entry]
    notes: list[str]

    def counts(self) -> dict[str, int]:
        """How many nodes are of each fidelity."""
        return {str(each): sum(entry.fidelity is each for entry in self.entries) for each in Fidelity}

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "nodes": [entry.as_json() for entry in self.entries],
            "notes": self.notes,
            "counts": self.counts(),
        }

    def lines(self) -> Iterable[str]:
        """The same for people."""
        for entry in self.entries:
            became = ", ".join(entry.ids) or "nothing"
            yield f"{entry.fidelity:<13} {entry.node} ({entry.type}) → {became}"
            yield from (f"{'':<13} - {reason}" for reason in entry.reasons)
        yield from (f"note: {note}" for note in self.notes)
        yield ", ".join(f"{count} {name}" for name, count in self.counts().items())
