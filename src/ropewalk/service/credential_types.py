"""The table of credential types as answers show it."""

from typing import Any

from ropewalk.nodes.credential_trials import TRIALS
from ropewalk.nodes.credential_types import TYPES


def shown_types() -> list[dict[str, Any]]:
    """Every type with the JSON Schema of its fields, and whether it can be tried."""
    return [
        {
            "name": each.name,
            "title": each.title,
            "summary": each.summary,
            "fields": each.schema(),
            "canTest": each.name in TRIALS,
        }
        for each in TYPES.values()
    ]
