"""Requests made from the API's own description, good and bad, against a real server."""

from pathlib import Path

import pytest

from tools.fuzz_api import fuzz, running

REQUESTS = 350
SECONDS = 60.0
"""On demand there are ten thousand: `make fuzz-api`."""


@pytest.mark.filterwarnings("ignore")  # the tool that makes the requests has some of its own
def test_no_request_breaks_the_server_and_no_answer_breaks_its_description(tmp_path: Path):
    with running(tmp_path) as server:
        server.furnish()
        found = fuzz(server, REQUESTS, SECONDS)

    assert found.wrong == {}
    assert [status for status in found.statuses if status >= 500] == []
    assert not found.unanswered
    assert found.statuses[200]
    assert found.statuses[422]
