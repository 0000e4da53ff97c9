"""`json`, `csv.parse` and `csv.write`: values to text and back."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal, Self, TypeAlias

import msgspec
from pydantic import Field, model_validator

from ropewalk.core.measured import TooLarge, measured
from ropewalk.nodes.base import About, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.comparing import Kind, converted, text_of
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.lists import ITEMS, OfItems
from ropewalk.nodes.paths import FieldPath, getter

JSON: TypeAlias = Any

LONGEST_TEXT = 16 * 1024 * 1024
"""A longer one would be held by one call of a parser for too long."""
BRIEF_TEXT = 4_096
MOST_COLUMNS = 10_000
MOST_ROWS = 1_000_000
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
DELIMITERS: Final = {"tab": "\t"}


class Json(NodeType):
    name = "json"
    summary = "Reads a value from JSON text, or writes a value as JSON text; also JSON Lines."
    about = About(
        title="JSON",
        category="data",
        icon="braces",
        keywords=("parse", "stringify", "encode", "decode", "jsonl", "ndjson", "text"),
        output={"description": "The value that was read; with `do: write` the text."},
    )
    only_shapes = True
    has_rules = True

    class Parameters(Inputs):
        do: Literal["parse", "write"] = Field("parse", description="Whether to read or to write.", examples=["write"])
        value: JSON = Field(description="The text to read, or the value to write.", examples=['{"total": 12.5}'])
        lines: bool = Field(False, description="Whether each line is a value: a list of values.", examples=[True])
        indent: int = Field(0, ge=0, le=8, description="By how many spaces written text is indented.", examples=[2])
        sort_keys: bool = Field(False, description="Whether written keys are in order.", examples=[True])

        @model_validator(mode="after")
        def _fits(self) -> Self:
            if self.do == "parse" and not isinstance(self.value, str):
                raise ValueError("value must be the text to read; to write a value say do: write")
            if self.do == "write" and self.lines and not isinstance(self.value, list):
                raise ValueError("lines writes a list: one line for each of its values")
            if self.lines and self.indent:
                raise ValueError("lines are not indented: give one of lines and indent")
            return self

    def takes_long(self, parameters: Parameters) -> bool:
        return not isinstance(parameters.value, str) or len(parameters.value) > BRIEF_TEXT

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        if parameters.do == "write":
            return Output(_written(parameters))
        text = within(parameters.value, "with.value")
        if not parameters.lines:
            return Output(_parsed(text, ""))
        rows = ((at, line) for at, line in enumerate(text.splitlines(), start=1) if line.strip())
        return Output([_parsed(line, f"line {at}: ") for at, line in rows])


def within(text: str, place: str, longest: int = LONGEST_TEXT) -> str:
    """The text, if it is not too long to be parsed."""
    if len(text) > longest:
        raise NodeFailure.permanent(f"{place}: is longer than {longest // 1024:,} Ki characters; read it in parts")
    return text


def _parsed(text: str, place: str) -> JSON:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise NodeFailure.permanent(f"with.value: {place}is no JSON: {error}") from None
    except RecursionError:
        raise NodeFailure.permanent(f"with.value: {place}is nested too deeply") from None


def _written(how: Json.Parameters) -> str:
    try:
        if how.lines:
            return "".join(f"{_measured(each, how)}\n" for each in how.value)
        text = _measured(how.value, how)
    except TooLarge:
        raise NodeFailure.permanent(f"with.value: is longer than {LONGEST_TEXT // 2**20} MiB as JSON") from None
    return msgspec.json.format(text, indent=how.indent) if how.indent else text


def _measured(value: JSON, how: Json.Parameters) -> str:
    return measured(value, LONGEST_TEXT, is_sorted=how.sort_keys).decode()


class Dialect(Inputs):
    """How a table is written as text."""

    delimiter: str = Field(
        ",", min_length=1, max_length=3, pattern='^([^"\\r\\n]|tab)$', examples=[";"],
        description="What stands between two fields: one character, or `tab`.",
    )  # fmt: skip

    @property
    def separator(self) -> str:
        """The character between two fields."""
        return DELIMITERS.get(self.delimiter, self.delimiter)


class CsvParse(NodeType):
    name = "csv.parse"
    summary = "Reads the rows of a table from CSV text."
    about = About(
        title="Read CSV",
        category="data",
        icon="table",
        keywords=("csv", "tsv", "table", "rows", "import", "spreadsheet", "parse"),
        output={"type": "array", "description": "An object for each row; without a header a list of texts."},
    )
    only_shapes = True
    has_rules = True

    class Parameters(Dialect):
        text: str = Field(description="The CSV.", examples=["id,total\n1,12.50\n"])
        header: bool | list[str] = Field(
            True, description="Whether the first row has the names of the columns, or these names.",
            examples=[["id", "total"]],
        )  # fmt: skip
        types: dict[str, Kind] = Field(
            {}, max_length=MOST_COLUMNS, description="What columns are converted to; an empty field is null then.",
            examples=[{"total": "number"}],
        )  # fmt: skip
        trim: bool = Field(False, description="Whether white space around fields is left out.", examples=[True])
        skip: int = Field(0, ge=0, le=MOST_ROWS, description="How many rows are passed over first.", examples=[1])
        limit: int | None = Field(
            None, ge=0, le=MOST_ROWS, description="How many rows are read at most.", examples=[1000]
        )

    def takes_long(self, parameters: Parameters) -> bool:
        return len(parameters.text) > BRIEF_TEXT

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        rows = _rows(parameters)
        names = parameters.header if isinstance(parameters.header, list) else None
        if parameters.header is True:
            names = next(rows, (0, []))[1]
        if names is None:
            return Output(_limited((row for _, row in rows), parameters.limit))
        return Output(_limited(_objects(rows, _checked_names(names), parameters.types), parameters.limit))


def _rows(how: CsvParse.Parameters) -> Iterator[tuple[int, list[str]]]:
    """Every row that is not empty, with its line."""
    text = within(how.text, "with.text").removeprefix("\ufeff")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=how.separator, strict=True)
    passed = 0
    try:
        for row in reader:
            passed += 1
            if row and passed > how.skip:
                yield reader.line_num, [field.strip() for field in row] if how.trim else row
    except csv.Error as error:
        raise NodeFailure.permanent(f"with.text: line {reader.line_num}: {error}") from None


def _checked_names(names: list[str]) -> list[str]:
    if len(names) > MOST_COLUMNS:
        raise NodeFailure.permanent(f"with.text: has more than {MOST_COLUMNS:,} columns")
    counts = Counter(names)
    if len(counts) < len(names):
        [(twice, _)] = counts.most_common(1)
        raise NodeFailure.permanent(f"with.text: two columns are called {twice[:64]!r}; name them with header")
    return names


def _objects(rows: Iterable[tuple[int, list[str]]], names: list[str], types: dict[str, Kind]) -> Iterator[JSON]:
    if strange := next((name for name in types if name not in names), None):
        raise NodeFailure.permanent(f"with.types.{strange[:64]}: there is no such column")
    for line, row in rows:
        if len(row) > len(names):
            raise NodeFailure.permanent(f"with.text: line {line}: has {len(row)} fields for {len(names)} columns")
        made: dict[str, JSON] = dict(zip(names, [*row, *[""] * (len(names) - len(row))], strict=True))
        for name, kind in types.items():
            made[name] = _typed(made[name], kind, line, name)
        yield made


def _typed(text: str, kind: Kind, line: int, name: str) -> JSON:
    try:
        return converted(text, kind) if text else None
    except ValueError as error:
        raise NodeFailure.permanent(f"with.text: line {line}: {name[:64]}: {error}") from None


def _limited(rows: Iterable[JSON], limit: int | None) -> list[JSON]:
    made: list[JSON] = []
    for row in rows:
        if limit is not None and len(made) >= limit:
            break
        if len(made) >= MOST_ROWS:
            raise NodeFailure.permanent(f"with.text: has more than {MOST_ROWS:,} rows; read them in parts with skip")
        made.append(row)
    return made


class CsvWrite(OfItems):
    name = "csv.write"
    summary = "Writes a list of objects or of lists as CSV text."
    about = About(
        title="Write CSV",
        category="data",
        icon="sheet",
        keywords=("csv", "tsv", "table", "rows", "export", "spreadsheet"),
        output={"type": "string", "description": "The CSV; its lines end with a line feed."},
    )

    class Parameters(Dialect):
        items: list[JSON] = ITEMS
        columns: list[FieldPath] | None = Field(
            None, min_length=1, max_length=MOST_COLUMNS, examples=[["id", "customer.name"]],
            description="The paths of the fields to write; by default the keys of all objects as they come.",
        )  # fmt: skip
        header: bool = Field(True, description="Whether the first row has the names of the columns.", examples=[False])
        quote: Literal["needed", "all"] = Field("needed", description="Which fields are quoted.", examples=["all"])
        escape_formulas: bool = Field(
            False, description="Whether a text that a spreadsheet would take for a formula begins with `'`.",
            examples=[True],
        )  # fmt: skip

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        made = io.StringIO()
        style: dict[str, Any] = {"quoting": csv.QUOTE_ALL if parameters.quote == "all" else csv.QUOTE_MINIMAL}
        writer = csv.writer(made, delimiter=parameters.separator, lineterminator="\n", **style)
        for row in _written_rows(parameters):
            writer.writerow(row)
            if made.tell() > LONGEST_TEXT:
                raise NodeFailure.permanent(f"with.items: are longer than {LONGEST_TEXT // 2**20} MiB as CSV")
        return Output(made.getvalue())


def _written_rows(how: CsvWrite.Parameters) -> Iterator[list[str]]:
    items = how.items
    cell = _safe if how.escape_formulas else text_of
    if how.columns is None and items and all(isinstance(item, list) for item in items):
        yield from ([cell(value) for value in item] for item in items)
        return
    for at, item in enumerate(items):
        if not isinstance(item, dict):
            raise NodeFailure.permanent(f"with.items[{at}]: must be an object, or all items lists")
    named = how.columns or list(dict.fromkeys(key for item in items for key in item))
    looks: list[Callable[[JSON], JSON]] = [getter(name) if how.columns else _key(name) for name in named]
    if how.header:
        yield [cell(name) for name in named]
    yield from ([cell(look(item)) for look in looks] for item in items)


def _key(name: str) -> Callable[[JSON], JSON]:
    return lambda item: item.get(name)


def _safe(value: JSON) -> str:
    text = text_of(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(FORMULA) else text
