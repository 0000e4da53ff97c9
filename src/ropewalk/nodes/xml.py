"""`xml`: XML text to a value and back. No document type, so no entities but the five of XML, and nothing from outside.

An element without attributes and children is its text. Any other is an object: `@name` is an attribute, `#text` the
text between children, and a child is under its name, or a list of them where there are several.
"""

import re
from typing import Any, Final, Literal, Self, TypeAlias
from xml.parsers.expat import ExpatError, ParserCreate
from xml.sax.saxutils import escape, quoteattr

from pydantic import Field, model_validator

from ropewalk.nodes.base import About, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.comparing import text_of
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.json_text import BRIEF_TEXT, LONGEST_TEXT, within

JSON: TypeAlias = Any

PIECE = 64 * 1024
"""So much is parsed at once: a thread hands over the interpreter between two pieces."""
DEEPEST = 50
MOST_ELEMENTS = 500_000
ATTRIBUTE: Final = "@"
TEXT: Final = "#text"

_NAME = re.compile(r"[A-Za-z_][\w.-]*(?::[A-Za-z_][\w.-]*)?")
# What XML 1.0 has no way to say.
_UNSAYABLE = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class Xml(NodeType):
    name = "xml"
    summary = "Reads a value from XML text, or writes a value as XML text."
    about = About(
        title="XML",
        category="data",
        icon="code-xml",
        keywords=("parse", "encode", "decode", "soap", "rss", "feed", "text"),
        output={"description": "`{root: value}` of what was read; with `do: write` the text."},
    )
    only_shapes = True
    has_rules = True

    class Parameters(Inputs):
        do: Literal["parse", "write"] = Field("parse", description="Whether to read or to write.", examples=["write"])
        value: JSON = Field(
            description="The text to read, or `{root: value}` to write.",
            examples=['<order id="1"><sku>pen</sku></order>'],
        )
        lists: list[str] = Field(
            [], max_length=1000, description="The names of elements that are lists, also where there is only one.",
            examples=[["line"]],
        )  # fmt: skip
        indent: int = Field(0, ge=0, le=8, description="By how many spaces written text is indented.", examples=[2])

        @model_validator(mode="after")
        def _fits(self) -> Self:
            if self.do == "parse" and not isinstance(self.value, str):
                raise ValueError("value must be the text to read; to write a value say do: write")
            if self.do == "write" and not (isinstance(self.value, dict) and len(self.value) == 1):
                raise ValueError("value must be an object with the root element as its one key")
            return self

    def takes_long(self, parameters: Parameters) -> bool:
        return not isinstance(parameters.value, str) or len(parameters.value) > BRIEF_TEXT

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        if parameters.do == "parse":
            return Output(_Reading(parameters.lists).read(within(parameters.value, "with.value")))
        [(name, value)] = parameters.value.items()
        writing = _Writing(parameters.indent)
        writing.element(name, value, 0)
        return Output('<?xml version="1.0" encoding="UTF-8"?>\n' + "".join(writing.pieces))


def read_xml(text: str, lists: list[str]) -> JSON:
    """The value of a text, with a list for each of these elements; a permanent failure if it is no XML."""
    return _Reading(lists).read(text)


class _Element:
    """An element whose end has not come yet."""

    __slots__ = ("fields", "name", "text")

    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        self.name = name
        self.fields: dict[str, JSON] = {f"{ATTRIBUTE}{key}": value for key, value in attributes.items()}
        self.text: list[str] = []

    def value(self) -> JSON:
        text = "".join(self.text)
        if not self.fields:
            return text
        return {**self.fields, TEXT: text.strip()} if text.strip() else self.fields


class _Reading:
    """The elements that are open."""

    def __init__(self, lists: list[str]) -> None:
        self._lists = dict.fromkeys(lists)
        self._open = [_Element("", {})]
        self._count = 0

    def read(self, text: str) -> JSON:
        """The value of the text; a permanent failure says where it is no XML."""
        parser = ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        try:
            data = text.encode()
            for at in range(0, len(data), PIECE):
                parser.Parse(data[at : at + PIECE], False)
            parser.Parse(b"", True)
        except ExpatError as error:
            raise NodeFailure.permanent(f"with.value: is no XML: {error}") from None
        except UnicodeEncodeError:
            raise NodeFailure.permanent("with.value: has a lone surrogate, which is no character") from None
        return self._open[0].fields

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if self._count > MOST_ELEMENTS or len(self._open) > DEEPEST:
            what = f"{MOST_ELEMENTS:,} elements" if self._count > MOST_ELEMENTS else f"{DEEPEST} levels"
            raise NodeFailure.permanent(f"with.value: has more than {what}")
        self._open.append(_Element(name, attributes))

    def _end(self, name: str) -> None:
        value = self._open.pop().value()
        fields = self._open[-1].fields
        if name not in fields:
            fields[name] = [value] if name in self._lists else value
        elif isinstance(fields[name], list):
            fields[name].append(value)
        else:
            fields[name] = [fields[name], value]

    def _characters(self, text: str) -> None:
        self._open[-1].text.append(text)

    def _refuse_doctype(self, *_: object) -> None:
        # A document type is what declares entities, and names files to read.
        raise NodeFailure.permanent("with.value: has a document type (<!DOCTYPE …>), which is not read; remove it")


class _Writing:
    """The text so far."""

    def __init__(self, indent: int) -> None:
        self.pieces: list[str] = []
        self._indent = indent
        self._left = LONGEST_TEXT

    def element(self, name: str, value: JSON, depth: int) -> None:
        if not _NAME.fullmatch(name):
            raise NodeFailure.permanent(f"with.value: {name[:64]!r} is no name for an element or an attribute")
        if isinstance(value, list):
            for each in value:
                self.element(name, each, depth)
            return
        attributes, text, children = _parts(value)
        start = f"{self._margin(depth)}<{name}{''.join(attributes)}"
        if not text and not children:
            self._add(f"{start}/>")
            return
        self._add(f"{start}>{text}")
        for child, inner in children:
            self.element(child, inner, depth + 1)
        self._add(f"{self._margin(depth) if children else ''}</{name}>")

    def _margin(self, depth: int) -> str:
        return f"{chr(10) if depth or self.pieces else ''}{' ' * (self._indent * depth)}" if self._indent else ""

    def _add(self, piece: str) -> None:
        self._left -= len(piece)
        if self._left < 0:
            raise NodeFailure.permanent(f"with.value: is longer than {LONGEST_TEXT // 2**20} MiB as XML")
        self.pieces.append(piece)


def _parts(value: JSON) -> tuple[list[str], str, list[tuple[str, JSON]]]:
    """The attributes and the text as they are written, and the children."""
    if not isinstance(value, dict):
        return [], escape(_said(value)), []
    attributes, children = [], []
    for key, inner in value.items():
        if key.startswith(ATTRIBUTE):
            if not _NAME.fullmatch(key[1:]):
                raise NodeFailure.permanent(f"with.value: {key[:64]!r} is no name for an element or an attribute")
            attributes.append(f" {key[1:]}={quoteattr(_said(inner))}")
        elif key != TEXT:
            children.append((key, inner))
    return attributes, escape(_said(value.get(TEXT))), children


def _said(value: JSON) -> str:
    text = text_of(value)
    if _UNSAYABLE.search(text):
        raise NodeFailure.permanent("with.value: has a control character, which XML cannot say")
    return text
