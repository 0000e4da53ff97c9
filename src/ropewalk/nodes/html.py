"""HTML as a tree of elements: read as browsers forgive it, within limits of size, depth and time, and written clean.

What is written is written anew from the tree, so that nothing of the text comes through but what is allowed: known
elements, known attributes, addresses of known schemes, and escaped text.
"""

import time
from collections.abc import Iterator
from html import escape, unescape
from typing import Final

from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.html_tokens import End, Start, Token, tokens

LONGEST_HTML = 4 * 1024 * 1024
MOST_ELEMENTS = 200_000
DEEPEST = 200
PATIENCE = 10.0
"""How long (s) one text may take to parse or to search."""

VOID: Final = frozenset(
    "area base br col embed hr img input link meta param source track wbr".split()  # noqa: SIM905 -- reads better
)
# What an opening tag ends, if it is open: authors leave these ends out.
_ENDS: Final = {
    **dict.fromkeys(("li",), ("li",)),
    **dict.fromkeys(("dt", "dd"), ("dt", "dd")),
    **dict.fromkeys(("td", "th"), ("td", "th")),
    **dict.fromkeys(("tr",), ("td", "th", "tr")),
    **dict.fromkeys(("tbody", "tfoot"), ("td", "th", "tr", "thead", "tbody")),
    **dict.fromkeys(("option",), ("option",)),
    **dict.fromkeys(("p", "div", "ul", "ol", "table", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "blockquote"), ("p",)),
}
# Where the search for what an opening tag ends stops.
_WALLS: Final = frozenset(("ul", "ol", "dl", "table", "select", "body", "html", "div", "article", "section"))
HIDDEN: Final = frozenset(("script", "style", "template", "noscript", "head", "title"))
BLOCKS: Final = frozenset(
    (
        *("address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figure", "footer", "form"),
        *("h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section"),
        *("table", "td", "th", "tr", "ul"),
    )
)

ALLOWED: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        ("b", "strong", "i", "em", "u", "s", "del", "ins", "sub", "sup", "small", "mark", "kbd", "samp"), ()
    ),
    **dict.fromkeys(("p", "br", "hr", "blockquote", "pre", "code", "ul", "dl", "dt", "dd", "div", "span", "abbr"), ()),
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tfoot", "tr", "caption"), ()),
    **dict.fromkeys(("td", "th"), ("align", "colspan", "rowspan")),
    "ol": ("start",),
    "li": (),
    "a": ("href", "title"),
    "img": ("src", "alt", "title", "width", "height"),
}
"""The elements that sanitised HTML has, and their attributes."""
SCHEMES: Final = ("http://", "https://", "mailto:", "tel:", "/", "#", "?")
ADDRESSES: Final = ("href", "src")


class Element:
    """One element: its name, attributes, parent, and the texts and elements in it."""

    __slots__ = ("attributes", "children", "name", "parent", "place")

    def __init__(self, name: str, attributes: dict[str, str], parent: "Element | None") -> None:
        self.name = name
        self.attributes = attributes
        self.parent = parent
        self.children: list[Element | str] = []
        # Its place among the elements of its parent, from 1.
        self.place = 0

    def walk(self) -> "Iterator[Element]":
        """The elements in it, in the order of the document."""
        waiting = [each for each in reversed(self.children) if isinstance(each, Element)]
        while waiting:
            found = waiting.pop()
            yield found
            waiting += [each for each in reversed(found.children) if isinstance(each, Element)]

    def text(self) -> str:
        """What a reader sees of it: without scripts, white space as one space, blocks on lines of their own."""
        pieces: list[str] = []
        _gather(self, pieces)
        lines = (" ".join(line.split()) for line in "".join(pieces).split("\n"))
        return "\n".join(line for line in lines if line)


def _gather(element: Element, pieces: list[str]) -> None:
    for child in element.children:
        if isinstance(child, str):
            pieces.append(child.replace("\n", " "))
        elif child.name not in HIDDEN:
            is_block = child.name in BLOCKS
            if is_block:
                pieces.append("\n")
            _gather(child, pieces)
            if is_block:
                pieces.append("\n")


class Deadline:
    """Gives up what takes longer than it may."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._end = time.monotonic() + PATIENCE

    def check(self) -> None:
        if time.monotonic() > self._end:
            raise NodeFailure.permanent(f"{self._field}: takes longer than {PATIENCE:g} s; give a shorter text")


class _Tree:
    """The tree so far, and the elements in it that are open."""

    def __init__(self, field: str) -> None:
        self.root = Element("", {}, None)
        self._field = field
        self._deadline = Deadline(field)
        self._open = [self.root]
        self._places = {id(self.root): 0}
        self._count = 0

    def add(self, token: Token) -> None:
        """Adds a text, or opens or closes an element."""
        self._deadline.check()
        if isinstance(token, str):
            self._open[-1].children.append(unescape(token))
        elif isinstance(token, End):
            self._end(token.name)
        else:
            self._start(token)

    def _start(self, token: Start) -> None:
        self._count += 1
        if self._count > MOST_ELEMENTS:
            raise NodeFailure.permanent(f"{self._field}: has more than {MOST_ELEMENTS:,} elements")
        self._end_implied(token.name)
        parent = self._open[-1]
        made = Element(token.name, token.attributes, parent)
        made.place = self._places[id(parent)] = self._places[id(parent)] + 1
        parent.children.append(made)
        # What is nested deeper than any page is kept flat.
        if token.name not in VOID and len(self._open) < DEEPEST:
            self._open.append(made)
            self._places[id(made)] = 0

    def _end(self, name: str) -> None:
        for depth in range(len(self._open) - 1, 0, -1):
            if self._open[depth].name == name:
                del self._open[depth:]
                return

    def _end_implied(self, name: str) -> None:
        """Closes what an opening tag ends, up to the next element that such an end does not go through."""
        ended = _ENDS.get(name, ())
        for depth in range(len(self._open) - 1, 0, -1) if ended else ():
            if self._open[depth].name in _WALLS:
                return
            if self._open[depth].name in ended:
                del self._open[depth:]


def parsed_html(text: str, field: str) -> Element:
    """The tree of a text; a permanent failure with this field if it is too large or takes too long."""
    if len(text) > LONGEST_HTML:
        raise NodeFailure.permanent(f"{field}: is longer than {LONGEST_HTML // 2**20} Mi characters")
    tree = _Tree(field)
    for token in tokens(text):
        tree.add(token)
    return tree.root


def sanitised(root: Element) -> str:
    """The tree as HTML of allowed elements only; the text of others stays, but for what no reader sees."""
    pieces: list[str] = []
    _write(root, pieces)
    return "".join(pieces)


def _write(element: Element, pieces: list[str]) -> None:
    for child in element.children:
        if isinstance(child, str):
            pieces.append(escape(child, quote=False))
            continue
        if child.name in HIDDEN:
            continue
        is_allowed = child.name in ALLOWED
        if is_allowed:
            pieces.append(f"<{child.name}{_attributes(child)}>")
        _write(child, pieces)
        if is_allowed and child.name not in VOID:
            pieces.append(f"</{child.name}>")


def _attributes(element: Element) -> str:
    allowed = ((name, element.attributes[name]) for name in ALLOWED[element.name] if name in element.attributes)
    kept = ((name, value) for name, value in allowed if name not in ADDRESSES or is_safe_address(value))
    return "".join(f' {name}="{escape(value)}"' for name, value in kept)


def is_safe_address(address: str) -> bool:
    """Whether an address leads to a page, a mail or a place in this one, and runs nothing."""
    # Browsers pass over white space and control characters in the scheme.
    plain = "".join(character for character in address if character > " ").lower()
    if plain.startswith(SCHEMES):
        return True
    before, colon, _ = plain.partition(":")
    return not colon or any(mark in before for mark in "/?#")
