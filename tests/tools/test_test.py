"""What failed beside others is executed once more, alone."""

import json
from pathlib import Path

import pytest

from tools import test


@pytest.mark.parametrize(("body", "code"), [("pass", 0), ("assert False", 1)])
def test_what_fails_also_alone_fails(
    body: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    (tmp_path / "test_one.py").write_text(f"def test_one():\n    {body}\n", encoding="utf-8")
    failed(tmp_path, ["test_one.py::test_one"])
    monkeypatch.chdir(tmp_path)

    assert test.alone() == code
    assert ("unsteady: test_one.py::test_one" in capfd.readouterr().out) is (code == 0)


@pytest.mark.parametrize("count", [0, test.FEW + 1])
def test_only_a_few_have_a_second_chance(count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    failed(tmp_path, [f"test_one.py::test_{number}" for number in range(count)])
    monkeypatch.chdir(tmp_path)

    assert test.alone() == test.TESTS_FAILED


def failed(folder: Path, names: list[str]) -> None:
    """Leave behind what pytest does when these fail."""
    cache = folder / test.FAILED
    cache.parent.mkdir(parents=True)
    cache.write_text(json.dumps(dict.fromkeys(names, True)), encoding="utf-8")
