"""CSS selectors, the part of them that finds things in pages; parsed once, matched against one element in short time.

There are names, `*`, `#id`, `.class`, `[attribute]` with `=`, `~=`, `|=`, `^=`, `$=`, `*=`, the pseudo-classes
`:first-child`, `:last-child`, `:nth-child(2)`, `:nth-child(odd|even)`, `:not(…)` of one of these, and `:contains("…")`;
joined by a space, `>`, `+`, `~`; several selectors with commas between them.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from ropewalk.nodes.html import Deadline, Element

LONGEST_SELECTOR = 500
MOST_PARTS = 20

Test = Callable[[Element], bool]

_TOKEN = re.compile(
    r"""(?P<space>\s*[>+~,]\s*|\s+)|(?P<name>\*|[A-Za-z][\w-]*)|\#(?P<id>[\w-]+)|\.(?P<class>[\w-]+)"""
    r"""|\[\s*(?P<attribute>[\w:-]+)\s*(?:(?P<operator>[~|^$*]?=)\s*(?P<value>"[^"]*"|'[^']*'|[\w-]+)\s*)?\]"""
    r"""|:(?P<pseudo>[a-z-]+)(?:\((?P<argument>"[^"]*"|'[^']*'|[^()]*)\))?"""
)


class Step(Struct, frozen=True):
    """What one element must be, and how it stands to the one before: a space, `>`, `+`, `~`; "" for the first."""

    joint: str
    tests: tuple[Test, ...]

    def fits(self, element: Element) -> bool:
        return all(test(element) for test in self.tests)


Path = tuple[Step, ...]


def parse_selector(text: str) -> tuple[Path, ...]:
    """The paths of a selector; ValueError if it is none of ours."""
    paths: list[list[tuple[str, list[Test]]]] = [[("", [])]]
    end = 0
    text = text.strip()
    while end < len(text):
        found = _TOKEN.match(text, end)
        if found is None:
            raise ValueError(f"is no selector from {text[end : end + 20]!r} on")
        end = found.end()
        if found["space"] is not None:
            _join(found["space"].strip() or " ", paths)
        else:
            paths[-1][-1][1].append(_test(found))
    if any(not tests for path in paths for _, tests in path):
        raise ValueError("is no selector: a part of it is empty")
    if sum(map(len, paths)) > MOST_PARTS:
        raise ValueError(f"has more than {MOST_PARTS} parts")
    return tuple(tuple(Step(joint, tuple(tests)) for joint, tests in path) for path in paths)


def _join(joint: str, paths: list[list[tuple[str, list[Test]]]]) -> None:
    if joint == ",":
        paths.append([("", [])])
    else:
        paths[-1].append((joint, []))


def _test(found: re.Match[str]) -> Test:
    if name := found["name"]:
        return (lambda element: True) if name == "*" else _named(name.lower())
    if wanted := found["id"]:
        return lambda element: element.attributes.get("id") == wanted
    if wanted := found["class"]:
        return lambda element: wanted in element.attributes.get("class", "").split()
    if found["attribute"]:
        return _attribute(found["attribute"].lower(), found["operator"], _unquoted(found["value"] or ""))
    return _pseudo(found["pseudo"], found["argument"])


def _named(name: str) -> Test:
    return lambda element: element.name == name


def _unquoted(text: str) -> str:
    return text[1:-1] if text[:1] in ("'", '"') else text


_OPERATORS: Final[dict[str, Callable[[str, str], bool]]] = {
    "=": lambda value, wanted: value == wanted,
    "~=": lambda value, wanted: wanted in value.split(),
    "|=": lambda value, wanted: value == wanted or value.startswith(f"{wanted}-"),
    "^=": lambda value, wanted: bool(wanted) and value.startswith(wanted),
    "$=": lambda value, wanted: bool(wanted) and value.endswith(wanted),
    "*=": lambda value, wanted: bool(wanted) and wanted in value,
}


def _attribute(name: str, operator: str | None, wanted: str) -> Test:
    if operator is None:
        return lambda element: name in element.attributes
    holds = _OPERATORS[operator]
    return lambda element: name in element.attributes and holds(element.attributes[name], wanted)


def _pseudo(name: str, argument: str | None) -> Test:
    argument = (argument or "").strip()
    if name == "first-child" and not argument:
        return lambda element: element.place == 1
    if name == "last-child" and not argument:
        return lambda element: _siblings(element)[-1] is element
    if name == "nth-child" and (argument in ("odd", "even") or re.fullmatch(r"[1-9][0-9]{0,6}", argument)):
        if argument.isdigit():
            return lambda element: element.place == int(argument)
        return lambda element: element.place % 2 == (argument == "odd")
    if name == "contains" and argument:
        wanted = _unquoted(argument)
        return lambda element: wanted in element.text()
    if name == "not" and (found := _TOKEN.fullmatch(argument)) and found["space"] is None:
        refused = _test(found)
        return lambda element: not refused(element)
    raise ValueError(f"has a pseudo-class that is not known: :{name[:32]}({argument[:32]})")


def _siblings(element: Element) -> list[Element]:
    """The elements of its parent."""
    assert element.parent is not None
    return [each for each in element.parent.children if isinstance(each, Element)]


def select(root: Element, paths: tuple[Path, ...], deadline: Deadline) -> Iterator[Element]:
    """The elements that a selector finds, in the order of the document."""
    searches = [_Search(path, root, deadline) for path in paths]
    for element in root.walk():
        if any(search.ends_at(len(search.path) - 1, element) for search in searches):
            yield element


class _Search:
    """One path in one document; what is known of an element is not found out again, so that no path takes long."""

    def __init__(self, path: Path, root: Element, deadline: Deadline) -> None:
        self.path = path
        self._root = root
        self._deadline = deadline
        self._known: dict[tuple[int, int], bool] = {}

    def ends_at(self, at: int, element: Element) -> bool:
        """Whether the path up to this step can end at the element."""
        key = (at, id(element))
        if key not in self._known:
            self._deadline.check()
            step = self.path[at]
            self._known[key] = step.fits(element) and (
                at == 0 or any(self.ends_at(at - 1, each) for each in self._before(step.joint, element))
            )
        return self._known[key]

    def _before(self, joint: str, element: Element) -> Iterator[Element]:
        """The elements that may stand before the joint."""
        if joint in ("+", "~"):
            siblings = _siblings(element)[: element.place - 1]
            yield from siblings[-1:] if joint == "+" else reversed(siblings)
            return
        parent = element.parent
        while parent is not None and parent is not self._root:
            yield parent
            parent = None if joint == ">" else parent.parent
