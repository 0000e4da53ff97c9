"""The pytest plugin: the fixture `ropewalk_engine`. Nothing of the engine is imported before a test asks for it."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ropewalk.testing.engine import TestEngine

PROJECT_FILE = "ropewalk.toml"


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Keep pytest from rewriting the assertions of all of Ropewalk, as it does with every package that has a plugin.

    Compiled anew, they cost a second wherever Python keeps no bytecode, and are not what runs in production. Pytest
    has no public way to say so; where these names are gone, only the time is lost.
    """
    hook = getattr(early_config.pluginmanager, "rewrite_hook", None)
    getattr(hook, "_must_rewrite", set()).discard("ropewalk")
    getattr(hook, "_marked_for_rewrite_cache", {}).clear()


@pytest.fixture
def ropewalk_engine(request: pytest.FixtureRequest) -> "Iterator[TestEngine]":
    """An engine on a store that is thrown away after the test; it skips time instead of waiting.

    It knows the node types of the project: those that the nearest `ropewalk.toml` above the test's file names.
    """
    from ropewalk.testing.opening import open_blocking

    with open_blocking(project=_project(request.path)) as engine:
        yield engine


def _project(test: Path) -> Path | None:
    """The folder of the project that a test is part of, if it is part of one."""
    return next((folder for folder in test.parents if (folder / PROJECT_FILE).is_file()), None)
