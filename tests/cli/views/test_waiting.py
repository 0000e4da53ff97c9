"""What waits, as terminals of 80, 100 and 160 columns show it."""

from io import StringIO
from typing import Any

import pytest
from rich.console import Console, RenderableType

from ropewalk.cli.views.keys import keys_listing
from ropewalk.cli.views.waiting import approvals_listing, waiting_listing
from ropewalk.cli.views.workflows import workflows_listing

NOON = 1_800_000_000_000_000
ID = "019a8b0c-3f1e-7c4e-9d53-2b1f0c9a7e11"
KEY = "019a8b0c3f1e7c4e9d532b1f0c9a7e11"
LONG = "a workflow with a name that is much longer than any terminal would like it to be, and then some more"
APPROVAL: dict[str, Any] = {
    "executionId": ID, "workflow": "refund", "workflowId": "w", "node": "ask", "item": None,
    "title": "Refund A-7?\x1b[31m", "details": None, "since": "2027-01-15T07:50:00Z", "expiresAt": None,
    "mayAnswer": True, "answerers": {"roles": ["operator", "editor", "admin"], "subjects": ["user:ann"]},
}  # fmt: skip
EXPECTED = """\
• Refund A-7?\\x1b[31m
  refund: ask, waits for 10m00s
  may answer: operator, editor, admin: user:ann
  answer it: ropewalk approve 0c9a7e11 ask
• Refund A-7?\\x1b[31m
  refund: ask[3], waits for 10m00s
  may answer: operator, editor, admin
  (not yours to answer)
"""


def text(drawn: RenderableType, width: int) -> str:
    to = Console(file=StringIO(), width=width, markup=False)
    to.print(drawn, crop=False)
    assert isinstance(to.file, StringIO)
    return "".join(f"{line.rstrip()}\n" for line in to.file.getvalue().splitlines())


def hint(*words: str) -> str:
    return " ".join(("ropewalk", *words))


@pytest.mark.parametrize("width", [80, 100, 160])
def test_approvals_are_whole_on_every_terminal(width: int):
    theirs = {**APPROVAL, "item": 3, "mayAnswer": False, "answerers": {**APPROVAL["answerers"], "subjects": None}}

    assert text(approvals_listing([APPROVAL, theirs], hint, NOON), width) == EXPECTED


@pytest.mark.parametrize("width", [80, 100, 160])
def test_lists_keep_ids_states_and_names_whole(width: int):
    execution = {"id": ID, "state": "RUNNING", "waitingFor": "approval", "workflow": LONG, "version": 12}
    key = {"id": KEY, "role": "operator", "root": True, "name": LONG, "revokedAt": None, "expiresAt": None,
           "lastUsedAt": "2027-01-15T07:50:00Z"}  # fmt: skip
    workflow = {"name": LONG, "published": 11, "latest": 12, "createdAt": "2027-01-15T07:50:00Z", "archivedAt": None}

    waiting = text(waiting_listing([execution]), width)
    keys = text(keys_listing([key], NOON), width)
    workflows = text(workflows_listing([workflow]), width)

    assert all(each in waiting for each in (ID[-8:], "RUNNING", "approval"))
    assert all(each in keys for each in (KEY, "root operator", "valid", LONG[:20]))
    assert all(each in workflows for each in ("v11", "v12"))
    # A long name may go on below.
    assert all(_unspaced(LONG) in _unspaced(listed) for listed in (waiting, workflows))


def _unspaced(words: str) -> str:
    return "".join(words.split())
