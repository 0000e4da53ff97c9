"""What people read: executions, nodes, events, runs and dead letters, as JSON with camelCase names.

Works on any reader of the store, also while another process owns it. A node's state is a fold of the log, so what is
shown is what is recorded, and nothing is stored twice.
"""

from ropewalk.core.state import Resolution
from ropewalk.service.reading.dead_letters import (
    dead_letter_in_detail,
    dead_letter_of,
    find_dead_letters,
    get_dead_letter,
    list_dead_letters,
)
from ropewalk.service.reading.events import list_events, page_of_events
from ropewalk.service.reading.executions import (
    get_execution,
    list_executions,
    outcome_of,
    summary_of,
    tell_execution,
    waiting_for,
)
from ropewalk.service.reading.nodes import list_nodes, node_of, nodes_of
from ropewalk.service.reading.recorded import Json, Recorded, outlined, recorded
from ropewalk.service.reading.runs import find_run, get_run, list_runs, page_of_runs

__all__ = [
    "Json",
    "Recorded",
    "Resolution",
    "dead_letter_in_detail",
    "dead_letter_of",
    "find_dead_letters",
    "find_run",
    "get_dead_letter",
    "get_execution",
    "get_run",
    "list_dead_letters",
    "list_events",
    "list_executions",
    "list_nodes",
    "list_runs",
    "node_of",
    "nodes_of",
    "outcome_of",
    "outlined",
    "page_of_events",
    "page_of_runs",
    "recorded",
    "summary_of",
    "tell_execution",
    "waiting_for",
]
