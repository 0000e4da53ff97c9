"""The plain log of a server says what went wrong, in one line."""

import io
import logging
from pathlib import Path

from rich.console import Console

from ropewalk.cli.views.progress import LogView, logs_to
from ropewalk.store.sqlite import owner_info
from tests.cli.conftest import Invoke
from tests.polling import blocking_until


def test_a_fault_is_told_with_its_cause_and_without_a_traceback():
    written = io.StringIO()
    view = LogView(Console(file=written, width=500), is_json=False)

    with logs_to(view):
        try:
            raise ValueError("the disk\nis gone")
        except ValueError:
            logging.getLogger("ropewalk.api").exception("a request failed")

    (line,) = written.getvalue().splitlines()
    assert line.endswith("api │ a request failed (ValueError: the disk is gone)")


def test_a_failure_in_the_background_is_in_the_log_beside_the_store(invoke: Invoke, project: Path):
    execution = invoke("run", "paid.yaml", "--detach").stdout.strip()
    blocking_until(lambda: owner_info("ropewalk.db") is None, "the process in the background has ended")

    lines = (project / "ropewalk.db.log").read_text(encoding="utf-8").splitlines()
    failed = [line[21:] for line in lines if "│" in line]
    assert failed[0] == (
        f"WARNING  failure │ paid {execution}: pay: attempt 1 failed (PERMANENT): the card has expired"
    )
    assert failed[-1] == f"ERROR    failure │ paid {execution}: FAILED: pay: the card has expired"


def test_run_tells_a_failure_once(invoke: Invoke):
    told = invoke("run", "paid.yaml").stderr

    assert told.count("FAILED: pay: the card has expired") == 1
    assert "failure │" not in told
