"""Workflows of n8n → workflows of ours: a pure translation, with a report of what became of each node.

`table.py` says how a type is entered; `control.py`, `data.py`, `reach.py` and `triggers.py` are the table.
"""

from typing import Any

from ropewalk.importing.n8n.assembling import Assembling, Imported, Types
from ropewalk.importing.n8n.reading import read

__all__ = ["Imported", "workflow_of"]


def workflow_of(document: Any, types: Types) -> Imported:
    """The workflow and its report, checked against these node types; ValueError if the document is none of n8n."""
    return Assembling(read(document), types).whole()
