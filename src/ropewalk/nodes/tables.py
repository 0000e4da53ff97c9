"""`csv.parse` and `csv.write`: rows from text and files, and to them."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Final, Literal, Self, TypeAlias

import msgspec
from pydantic import Field, model_validator

from ropewalk.nodes.base import About, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.comparing import Kind, converted, text_of
from ropewalk.nodes.files import LONGEST_NAME, as_value
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.json_text import BRIEF_TEXT, LONGEST_TEXT, within
from ropewalk.nodes.lists import FEW
from ropewalk.nodes.paths import FieldPath, getter
from ropewalk.nodes.streams import Pulled, gathered, given_file, lines_of, pulled_through, stepped

JSON: TypeAlias = Any

MOST_COLUMNS = 10_000
MOST_ROWS = 1_000_000
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
DELIMITERS: Final = {"tab": "\t"}
JSON_LINES: Final = "application/x-ndjson"
Rows: TypeAlias = Iterator[tuple[int, list[str]]]
Encoding: TypeAlias = Literal["utf-8", "utf-16", "latin-1", "windows-1252"]


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
    summary = "Reads the rows of a table from CSV: a text, or a file of any size."
    about = About(
        title="Read CSV",
        category="data",
        icon="table",
        keywords=("csv", "tsv", "table", "rows", "import", "spreadsheet", "parse"),
        output={
            "type": ["array", "object"],
            "description": "An object for each row; without a header a list of texts. A file if `as` says so.",
        },
    )
    only_shapes = True
    has_rules = True

    class Parameters(Dialect):
        text: str | None = Field(None, description="The CSV as text.", examples=["id,total\n1,12.50\n"])
        file: dict[str, JSON] | None = Field(
            None, description="The CSV as a file.", examples=["{{ nodes.load.output.file }}"]
        )
        encoding: Encoding = Field("utf-8", description="How the file is encoded.", examples=["windows-1252"])
        as_: Literal["rows", "file"] = Field(
            "rows", alias="as", examples=["file"],
            description="What is made of a file: the `rows`, or a `file` of JSON Lines, of any size.",
        )  # fmt: skip
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

        @model_validator(mode="after")
        def _one(self) -> Self:
            if (self.text is None) == (self.file is None):
                raise ValueError("give one of text and file")
            if self.file is None and (self.as_ == "file" or self.encoding != "utf-8"):
                raise ValueError("as: file and encoding go with file")
            return self

    def waits(self, parameters: Parameters) -> bool:
        return parameters.file is not None

    def takes_long(self, parameters: Parameters) -> bool:
        return len(parameters.text or "") > BRIEF_TEXT

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        if parameters.file is None:
            text = within(parameters.text or "", "with.text").removeprefix("\ufeff")
            return Output(_made(io.StringIO(text, newline=""), parameters))
        file = given_file(parameters.file, "with.file")
        chunks = context.files.read(file)
        if parameters.as_ == "rows":
            return Output(await pulled_through(chunks, lambda raw: _made(_lines(raw, parameters), parameters)))
        parts = gathered(_as_json_lines(_parsed(_lines(Pulled(chunks), parameters), parameters), parameters.limit))
        made = await context.files.write(stepped(parts), f"{file.name.removesuffix('.csv')}.jsonl", JSON_LINES)
        return Output(as_value(made))


def _lines(raw: Pulled, how: CsvParse.Parameters) -> Iterator[str]:
    return lines_of(raw, "with.file", how.encoding)


def _made(lines: Iterable[str], how: CsvParse.Parameters) -> list[JSON]:
    return _limited(_parsed(lines, how), how.limit)


def _as_json_lines(rows: Iterable[JSON], limit: int | None) -> Iterator[str]:
    for at, row in enumerate(rows):
        if at == limit:
            return
        yield f"{msgspec.json.encode(row).decode()}\n"


def _parsed(lines: Iterable[str], how: CsvParse.Parameters) -> Iterator[JSON]:
    """The rows as they are handed on; nothing is read before the first is asked for."""
    rows = _rows(lines, how)
    names = how.header if isinstance(how.header, list) else None
    if how.header is True:
        names = next(rows, (0, []))[1]
    if names is None:
        yield from (row for _, row in rows)
    else:
        yield from _objects(rows, _checked_names(names), how.types)


def _rows(lines: Iterable[str], how: CsvParse.Parameters) -> Rows:
    """Every row that is not empty, with its line."""
    reader = csv.reader(lines, delimiter=how.separator, strict=True)
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


class CsvWrite(NodeType):
    name = "csv.write"
    summary = "Writes objects or lists as CSV: a text, or a file of any size."
    about = About(
        title="Write CSV",
        category="data",
        icon="sheet",
        keywords=("csv", "tsv", "table", "rows", "export", "spreadsheet"),
        output={
            "type": ["string", "object"],
            "description": "The CSV; its lines end with a line feed. A file if `as` says so, or if it is made of one.",
        },
    )
    only_shapes = True
    has_rules = True

    class Parameters(Dialect):
        items: list[JSON] | None = Field(None, description="The list.", examples=["{{ nodes.orders.output }}"])
        file: dict[str, JSON] | None = Field(
            None, examples=["{{ nodes.rows.output }}"],
            description="The items as a file of JSON Lines, in the place of a list; a file is made of it.",
        )  # fmt: skip
        as_: Literal["text", "file"] = Field(
            "text", alias="as", description="What a list is written as: a `text`, or a `file`.", examples=["file"]
        )
        file_name: str = Field(
            "table.csv", max_length=LONGEST_NAME, description="What a file is called.", examples=["orders.csv"]
        )
        columns: list[FieldPath] | None = Field(
            None, min_length=1, max_length=MOST_COLUMNS, examples=[["id", "customer.name"]],
            description="The paths of the fields to write; by default the keys of all objects as they come, those of "
            "the first object if they come in a file.",
        )  # fmt: skip
        header: bool = Field(True, description="Whether the first row has the names of the columns.", examples=[False])
        quote: Literal["needed", "all"] = Field("needed", description="Which fields are quoted.", examples=["all"])
        escape_formulas: bool = Field(
            False, description="Whether a text that a spreadsheet would take for a formula begins with `'`.",
            examples=[True],
        )  # fmt: skip

        @model_validator(mode="after")
        def _one(self) -> Self:
            if (self.items is None) == (self.file is None):
                raise ValueError("give one of items and file")
            return self

    def waits(self, parameters: Parameters) -> bool:
        return parameters.as_ == "file" or parameters.file is not None

    def takes_long(self, parameters: Parameters) -> bool:
        return len(parameters.items or ()) > FEW

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        if not self.waits(parameters):
            return Output(_text(parameters))
        rows = _rows_of_list(parameters, parameters.items or [])
        if parameters.file is not None:
            chunks = context.files.read(given_file(parameters.file, "with.file"))
            rows = _rows_of_file(parameters, lines_of(Pulled(chunks), "with.file"))
        parts = gathered(_as_csv(rows, parameters))
        return Output(as_value(await context.files.write(stepped(parts), parameters.file_name, "text/csv")))


def _text(how: CsvWrite.Parameters) -> str:
    made = io.StringIO()
    for line in _as_csv(_rows_of_list(how, how.items or []), how):
        made.write(line)
        if made.tell() > LONGEST_TEXT:
            raise NodeFailure.permanent(
                f"with.items: are longer than {LONGEST_TEXT // 2**20} MiB as CSV; write them as a file"
            )
    return made.getvalue()


def _as_csv(rows: Iterable[list[str]], how: CsvWrite.Parameters) -> Iterator[str]:
    made = io.StringIO()
    style: dict[str, Any] = {"quoting": csv.QUOTE_ALL if how.quote == "all" else csv.QUOTE_MINIMAL}
    writer = csv.writer(made, delimiter=how.separator, lineterminator="\n", **style)
    for row in rows:
        writer.writerow(row)
        yield made.getvalue()
        made.seek(0)
        made.truncate()


def _rows_of_file(how: CsvWrite.Parameters, lines: Iterable[str]) -> Iterator[list[str]]:
    """The rows of items that come one by one: the first says what columns there are."""
    items = items_of_lines(lines)
    first = next(items, None)
    if first is None:
        return
    cell, is_list = _cell(how), how.columns is None and isinstance(first[1], list)
    if not is_list and not isinstance(first[1], dict):
        raise NodeFailure.permanent("with.file: must have objects, or lists alone")
    named = [] if is_list else how.columns or list(first[1])
    known, looks = frozenset(named), _looks(how, named)
    if how.header and named:
        yield [cell(name) for name in named]
    for at, item in chain([first], items):
        if not isinstance(item, list if is_list else dict):
            raise NodeFailure.permanent(f"with.file: line {at}: must be like the first, an object or a list")
        if how.columns is None and not is_list and (strange := next((key for key in item if key not in known), None)):
            raise NodeFailure.permanent(f"with.file: line {at}: the first has no {strange[:64]!r}; give columns")
        yield [cell(value) for value in item] if is_list else [cell(look(item)) for look in looks]


def items_of_lines(lines: Iterable[str]) -> Iterator[tuple[int, JSON]]:
    """The items of JSON Lines, each with its line."""
    for at, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield at, msgspec.json.decode(line)
            except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
                raise NodeFailure.permanent(f"with.file: line {at}: is no JSON: {error}") from None


def _rows_of_list(how: CsvWrite.Parameters, items: list[JSON]) -> Iterator[list[str]]:
    cell = _cell(how)
    if how.columns is None and items and all(isinstance(item, list) for item in items):
        yield from ([cell(value) for value in item] for item in items)
        return
    for at, item in enumerate(items):
        if not isinstance(item, dict):
            raise NodeFailure.permanent(f"with.items[{at}]: must be an object, or all items lists")
    named = how.columns or list(dict.fromkeys(key for item in items for key in item))
    looks = _looks(how, named)
    if how.header:
        yield [cell(name) for name in named]
    yield from ([cell(look(item)) for look in looks] for item in items)


def _cell(how: CsvWrite.Parameters) -> Callable[[JSON], str]:
    return _safe if how.escape_formulas else text_of


def _looks(how: CsvWrite.Parameters, named: list[str]) -> list[Callable[[JSON], JSON]]:
    return [getter(name) if how.columns else _key(name) for name in named]


def _key(name: str) -> Callable[[JSON], JSON]:
    return lambda item: item.get(name)


def _safe(value: JSON) -> str:
    text = text_of(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(FORMULA) else text
