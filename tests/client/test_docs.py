"""The examples of the client's page do what they say."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from tests.client.servers import Served

PAGE = Path(__file__).parents[2] / "docs" / "client.md"


async def test_every_example_of_the_page_runs(server: Served, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ROPEWALK_URL", server.url)
    monkeypatch.setenv("ROPEWALK_TOKEN", server.token)
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}

    for example in examples:
        await asyncio.to_thread(exec, compile(example, PAGE.name, "exec"), names)

    assert len(examples) == 5
