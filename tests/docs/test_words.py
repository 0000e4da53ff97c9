"""Words that hide who is meant are refused in the folders that are free of them."""

from pathlib import Path

import pytest

from tools.words import WORDS, complaints


def written(folder: Path, text: str) -> list[str]:
    """What is said of a file with this text."""
    (folder / "clean").mkdir()
    (folder / "clean" / "some.py").write_text(text)
    return list(complaints(folder, ["clean"]))


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("text", ["# {} waits", '"""As {}\'s own."""', "def test_{}s_turn_comes(): ...", "x = '{}'"])
def test_a_word_that_hides_its_subject_is_refused_with_its_line(tmp_path: Path, word: str, text: str):
    found = written(tmp_path, f"x = 1\n{text.format(word)}\n")

    assert [each.partition(": ")[0] for each in found] == ["clean/some.py:2"]
    assert repr(word) in found[0]


def test_a_capital_hides_no_word(tmp_path: Path):
    assert written(tmp_path, f"# {WORDS[0].capitalize()} waits.\n")


def test_a_word_inside_another_is_not_meant(tmp_path: Path):
    assert written(tmp_path, "class CancelManyBody: ...\n# the worker that owns it\n") == []


def test_a_folder_that_was_moved_is_not_left_unchecked(tmp_path: Path):
    assert ["there is no folder gone" in each for each in complaints(tmp_path, ["gone"])] == [True]
