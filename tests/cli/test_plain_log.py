"""The plain log of a server says what went wrong, in one line."""

import io
import logging

from rich.console import Console

from ropewalk.cli.view import LogView, logs_to


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
