"""What is said while one waits, and what a service leaves in its log."""

import io
import logging

import pytest
from rich.console import Console

from ropewalk.cli.views.console import print_json_line
from ropewalk.cli.views.progress import LogView, logs_to

HOSTILE = "paid\n2026-11-18T00:00:00Z  engine │ all is well\r\x1b[2J\x85\u2028end"


def test_a_line_of_json_is_written_in_one_piece(monkeypatch: pytest.MonkeyPatch):
    written: list[str] = []

    class Pipe(io.StringIO):
        def write(self, text: str) -> int:
            written.append(text)
            return len(text)

    monkeypatch.setattr("sys.stdout", Pipe())
    print_json_line({"a": 1})

    assert written == ['{"a":1}\n']


def test_one_record_is_one_line_of_a_plain_log_with_any_payload():
    stream = io.StringIO()
    about = {"execution": "e1", "workspace": "default", "node": HOSTILE, "attempt": 1, "item": None}

    with logs_to(LogView(Console(file=stream, width=500, soft_wrap=True), is_json=False)):
        logging.getLogger("ropewalk.node").info("%s", HOSTILE, extra={"about": about, "fields": {}})
        logging.getLogger(f"ropewalk.{HOSTILE}").warning(HOSTILE)

    written = stream.getvalue()
    assert len(written.splitlines()) == written.count("\n") == 2
    assert all(sign == "\n" or sign.isprintable() for sign in written)
