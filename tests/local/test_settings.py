"""Embedded use is set as the commands are: arguments over environment over `ropewalk.toml`."""

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ropewalk
from ropewalk import Workflow

NODES = """
import ropewalk

@ropewalk.node
def shout(text: str) -> str:
    return text.upper()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with nothing in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ROPEWALK_DB", raising=False)
    return tmp_path


def shouting() -> Workflow:
    workflow = Workflow("shouting")
    workflow.node("a", "shout", text="{{ env.WORD }}")
    return workflow


async def test_an_engine_heeds_the_file_in_the_current_folder(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / "ropewalk.toml").write_text(
        'db = "said.db"\nnodes = ["words_of_toml.py"]\nhands = 7\n[env]\nWORD = "hi"\n'
    )
    (folder / "words_of_toml.py").write_text(NODES)
    monkeypatch.setattr(sys, "path", list(sys.path))

    async with ropewalk.open() as engine:
        assert await (await engine.start(shouting())).result() == {"a": "HI"}
        assert engine.service.engine.settings.hands == 7

    assert (folder / "said.db").exists()


async def test_arguments_count_more_than_the_environment_and_that_more_than_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    (folder / "ropewalk.toml").write_text('db = "file.db"\n')
    (folder / "other.toml").write_text('db = "other.db"\n')
    async with ropewalk.open(config="other.toml"):
        assert (folder / "other.db").exists()
    monkeypatch.setenv("ROPEWALK_DB", "environment.db")
    async with ropewalk.open():
        assert (folder / "environment.db").exists()
    async with ropewalk.open("sqlite:///argument.db"):
        assert (folder / "argument.db").exists()

    assert not (folder / "file.db").exists()


async def test_without_a_word_the_store_is_ropewalk_db(folder: Path):
    async with ropewalk.open():
        assert (folder / "ropewalk.db").exists()


def test_a_run_takes_everything_but_the_store_from_the_file(folder: Path):
    (folder / "ropewalk.toml").write_text('db = "said.db"\n[env]\nWORD = "hi"\n')
    workflow = Workflow("word")
    workflow.node("a", "noop", value="{{ env.WORD }}")

    assert ropewalk.run(workflow) == {"a": "hi"}
    assert not (folder / "said.db").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [("hnads = 7", "hnads is no setting; did you mean hands"), ("hands = -1", "hands: must be"),
     ("=", "cannot be used"), ('nodes = ["nothing_here"]', "nothing_here cannot be imported")],
)  # fmt: skip
async def test_a_file_that_cannot_be_used_is_refused_and_no_store_is_made(folder: Path, text: str, message: str):
    (folder / "ropewalk.toml").write_text(text)

    with pytest.raises(ropewalk.Invalid, match=message):
        async with ropewalk.open():
            pass

    assert sorted(each.name for each in folder.iterdir()) == ["ropewalk.toml"]


async def test_node_types_of_the_program_and_of_the_file_may_be_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / "ropewalk.toml").write_text('nodes = ["words_of_both.py"]\n')
    (folder / "words_of_both.py").write_text(NODES)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    from words_of_both import shout  # type: ignore[import-not-found]  # written just now

    async with ropewalk.open(nodes=[shout]) as engine:
        assert engine.service.types.get("shout") is shout


@ropewalk.node
def shout(text: str) -> str:
    return text


async def test_two_node_types_of_one_name_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / "ropewalk.toml").write_text('nodes = ["words_of_one.py"]\n')
    (folder / "words_of_one.py").write_text(NODES)
    monkeypatch.setattr(sys, "path", list(sys.path))

    with pytest.raises(ropewalk.Invalid, match="two node types are called 'shout'"):
        async with ropewalk.open(nodes=[shout]):
            pass


# The process


@pytest.fixture
def untouched() -> Iterator[None]:
    """A process that has set neither its collector nor its turns, whatever other tests have left behind."""
    before = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(700, 10, 10)
    sys.setswitchinterval(0.005)
    yield
    gc.set_threshold(*before[0])
    sys.setswitchinterval(before[1])


@pytest.mark.usefixtures("untouched")
async def test_a_program_has_its_own_collector_again_when_its_engine_is_closed(folder: Path):
    before = gc.get_threshold(), sys.getswitchinterval()

    async with ropewalk.open():
        assert gc.get_threshold() > before[0]
        assert sys.getswitchinterval() < before[1]

    assert (gc.get_threshold(), sys.getswitchinterval()) == before


async def test_a_program_that_has_set_its_collector_keeps_it(folder: Path):
    before = gc.get_threshold()
    gc.set_threshold(5_000, 11, 12)
    try:
        async with ropewalk.open():
            assert gc.get_threshold() == (5_000, 11, 12)
        assert gc.get_threshold() == (5_000, 11, 12)
    finally:
        gc.set_threshold(*before)
