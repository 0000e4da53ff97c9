"""`text.template`: a text with places to fill in, repeated and left out by what the data says.

    Dear <% input.name %>,
    <% each input.lines %>- <% item.sku %>: <% item.price ?? "free" %>
    <% end %><% if input.total > 100 %>Thank you!<% else %>See you.<% end %>

What stands between `<%` and `%>` is an expression of the language of documents, over `input` (the data) and, inside
`each`, `item` and `index`; these marks are another's than those of documents, which are filled in before a node runs.
A template is parsed into a tree once. All expressions together have the steps of one document's parameters, and the
text has a limit, so that rendering always ends.
"""

import html
import re
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from pydantic import Field, field_validator

from ropewalk.core.expression import Expression, ExpressionError, Scope, compile_expression, is_true
from ropewalk.nodes.base import About, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.comparing import text_of
from ropewalk.nodes.inputs import Inputs

JSON: TypeAlias = Any

LONGEST_TEMPLATE = 1024 * 1024
LONGEST_TEXT = 16 * 1024 * 1024
MOST_MARKS = 10_000
DEEPEST = 16
NAMES: Final = ("input", "item", "index")

_WORD = re.compile(r"\s*(each|if|else|end)\b\s*(.*)", re.DOTALL)


class Each(Struct, frozen=True):
    """A part that is written once for each item of a list."""

    items: Expression
    line: int
    body: "tuple[Part, ...]"


class Choice(Struct, frozen=True):
    """A part that is written if a condition holds, and the one that is written if it does not."""

    condition: Expression
    line: int
    body: "tuple[Part, ...]"
    other: "tuple[Part, ...]"


class Place(Struct, frozen=True):
    """A place that is filled in."""

    value: Expression
    line: int


Part: TypeAlias = str | Place | Each | Choice


class _Open(Struct):
    """A block whose end has not come yet."""

    word: str
    condition: Expression | None
    line: int
    parts: list[Part]
    before_else: list[Part] | None = None

    def closed(self) -> Part:
        assert self.condition is not None
        if self.word == "each":
            return Each(self.condition, self.line, tuple(self.parts))
        body, other = (self.parts, []) if self.before_else is None else (self.before_else, self.parts)
        return Choice(self.condition, self.line, tuple(body), tuple(other))


def parse_template(text: str) -> tuple[Part, ...]:
    """The template as a tree; ValueError with the line of what is wrong."""
    blocks = [_Open("", None, 1, [])]
    end, line = 0, 1
    for _ in range(MOST_MARKS):
        start = text.find("<%", end)
        if start < 0:
            break
        line += text.count("\n", end, start)
        stop = text.find("%>", start)
        if stop < 0:
            raise ValueError(f"line {line}: <% without %>")
        blocks[-1].parts.append(text[end:start])
        _enter(text[start + 2 : stop], line, blocks)
        line += text.count("\n", start, stop)
        end = stop + 2
    else:
        raise ValueError(f"has more than {MOST_MARKS:,} marks")
    if len(blocks) > 1:
        raise ValueError(f"line {blocks[-1].line}: {blocks[-1].word} without end")
    return (*blocks[0].parts, text[end:])


def _enter(inside: str, line: int, blocks: list[_Open]) -> None:
    found = _WORD.fullmatch(inside)
    word, rest = (found[1], found[2]) if found else ("", inside)
    block = blocks[-1]
    if word in ("each", "if"):
        if len(blocks) > DEEPEST:
            raise ValueError(f"line {line}: is nested more than {DEEPEST} levels deep")
        blocks.append(_Open(word, _compiled(rest, line), line, []))
    elif word == "else" and block.word == "if" and block.before_else is None and not rest.strip():
        block.before_else, block.parts = block.parts, []
    elif word == "end" and block.word and not rest.strip():
        blocks.pop()
        blocks[-1].parts.append(block.closed())
    elif word in ("else", "end"):
        raise ValueError(f"line {line}: {word} does not belong here")
    else:
        block.parts.append(Place(_compiled(inside, line), line))


def _compiled(source: str, line: int) -> Expression:
    try:
        found = compile_expression(source)
    except ExpressionError as error:
        raise ValueError(f"line {line}: {error}") from None
    if strange := next((path[0] for path in found.references if path[0] not in NAMES), None):
        raise ValueError(f"line {line}: there is no {strange} here; a template knows {', '.join(NAMES)}")
    return found


class TextTemplate(NodeType):
    name = "text.template"
    summary = "Fills in a text by data, with parts that are repeated for each item or left out."
    about = About(
        title="Text template",
        category="data",
        icon="file-text",
        keywords=("text", "render", "mail merge", "letter", "loop", "format"),
        output={"type": "string", "description": "The text."},
    )
    only_shapes = True
    has_rules = True

    class Parameters(Inputs):
        template: str = Field(
            max_length=LONGEST_TEMPLATE,
            description=(
                "The text; `<% input.name %>` is filled in, `<% each input.lines %>…<% end %>` repeats with `item` "
                "and `index`, `<% if … %>…<% else %>…<% end %>` chooses."
            ),
            examples=["Dear <% input.name %>, you have <% length(input.lines) %> lines."],
        )
        data: JSON = Field(
            None, description="What the template calls `input`.", examples=[{"name": "Ada", "lines": []}]
        )
        escape: Literal["none", "html"] = Field(
            "none", description="Whether values are written so that they are no HTML.", examples=["html"]
        )

        @field_validator("template")
        @classmethod
        def _a_template(cls, template: str) -> str:
            parse_template(template)
            return template

    def takes_long(self, parameters: Parameters) -> bool:
        return True

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        rendering = _Rendering(parameters.data, is_html=parameters.escape == "html")
        rendering.write(parse_template(parameters.template))
        return Output("".join(rendering.pieces))


class _Rendering:
    """The text so far."""

    def __init__(self, data: JSON, *, is_html: bool) -> None:
        self.pieces: list[str] = []
        self._scope = Scope(input=data)
        self._left = LONGEST_TEXT
        self._is_html = is_html

    def write(self, parts: tuple[Part, ...]) -> None:
        for part in parts:
            match part:
                case str():
                    self._add(part)
                case Place():
                    text = text_of(self._value(part.value, part.line))
                    self._add(html.escape(text) if self._is_html else text)
                case Choice():
                    self.write(part.body if is_true(self._value(part.condition, part.line)) else part.other)
                case Each():
                    self._each(part)

    def _each(self, part: Each) -> None:
        items = self._value(part.items, part.line)
        if not isinstance(items, list | None):
            raise NodeFailure.permanent(f"with.template: line {part.line}: each needs a list")
        scope = self._scope
        outer = scope.item, scope.index
        for scope.index, scope.item in enumerate(items or ()):
            # An item without any expression takes a step too.
            self._spend(part.line)
            self.write(part.body)
        scope.item, scope.index = outer

    def _value(self, expression: Expression, line: int) -> JSON:
        self._spend(line)
        try:
            return expression.evaluate_in_tree(self._scope)
        except ExpressionError as error:
            raise NodeFailure.permanent(f"with.template: line {line}: {error}") from None

    def _spend(self, line: int) -> None:
        self._scope.steps -= 1
        if self._scope.steps < 0:
            raise NodeFailure.permanent(f"with.template: line {line}: the template takes too many steps")

    def _add(self, text: str) -> None:
        self._left -= len(text)
        if self._left < 0:
            raise NodeFailure.permanent(f"with.template: the text is longer than {LONGEST_TEXT // 2**20} MiB")
        self.pieces.append(text)
