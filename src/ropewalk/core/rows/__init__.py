"""The rows people read: a fold of the log and nothing else."""

from ropewalk.core.rows.ledger import RunLedger
from ropewalk.core.rows.projection import Projection, RunProjection, rows
from ropewalk.core.rows.tables import Changes, ExecutionRow, LetterRow, NodeRow, Rows, RunRow, letter_id, run_id

__all__ = [
    "Changes",
    "ExecutionRow",
    "LetterRow",
    "NodeRow",
    "Projection",
    "Rows",
    "RunLedger",
    "RunProjection",
    "RunRow",
    "letter_id",
    "rows",
    "run_id",
]
