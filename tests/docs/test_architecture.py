"""What ARCHITECTURE.md names is there, and its first walk is the one that a request takes."""

import ast
import re
from pathlib import Path

import pytest

import ropewalk
from tools import walk

SOURCE = Path(ropewalk.__file__).parent
TEXT = (SOURCE.parent.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`([\w/]+\.py): ([\w.]+)`")
"""`file: function`, the file by its path below src/ropewalk, or by its name alone."""
TO_THE_NODE = TEXT[TEXT.index("**An HTTP start") : TEXT.index("9. What the node returned")]


def functions(path: Path) -> set[str]:
    """The functions of a module, its methods as Class.method and by their names alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    classes = [each for each in ast.walk(tree) if isinstance(each, ast.ClassDef)]
    return found | {f"{each.name}.{part.name}" for each in classes for part in each.body if hasattr(part, "name")}


@pytest.mark.parametrize(("file", "function"), sorted(set(NAMED.findall(TEXT))))
def test_what_the_architecture_names_is_there(file: str, function: str):
    places = [SOURCE / file] if "/" in file else sorted(SOURCE.rglob(file))

    assert any(place.exists() and function in functions(place) for place in places), f"there is no {file}: {function}"


def test_a_start_goes_the_way_that_the_architecture_tells():
    elsewhere = {("claims.py", "Claims._claim")}
    told = [f"{file}: {function}" for file, function in NAMED.findall(TO_THE_NODE) if (file, function) not in elsewhere]
    gone = [hop.name for hop in walk.measured()]

    places = [gone.index(each) if each in gone else each for each in told]

    assert places == sorted(places, key=lambda place: (isinstance(place, str), place)), "told in another order"
    assert [place for place in places if isinstance(place, str)] == [], "not on the way"
