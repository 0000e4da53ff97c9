"""The examples of the client's page do what they say."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.client.servers import Served
from tests.snippets import snippets

PAGE = Path(__file__).parents[2] / "docs" / "client.md"


async def test_every_example_of_the_page_runs(server: Served, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ROPEWALK_URL", server.url)
    monkeypatch.setenv("ROPEWALK_TOKEN", server.token)
    examples = snippets(PAGE, "python")
    names: dict[str, Any] = {}

    for example in examples:
        await asyncio.to_thread(exec, compile(example.text, PAGE.name, "exec"), names)

    assert len(examples) == 5
