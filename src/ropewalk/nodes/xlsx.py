"""`xlsx.read` and `xlsx.write`: the rows of workbooks, and workbooks of rows."""

import re
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from threading import Event
from typing import IO, Any, Final, Literal, Self, TypeAlias

import msgspec
from pydantic import Field, model_validator

from ropewalk.nodes.base import About, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.comparing import text_of
from ropewalk.nodes.files import FILE_SCHEMA, LONGEST_NAME, File, as_value
from ropewalk.nodes.folder import on_a_thread
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.paths import FieldPath, getter
from ropewalk.nodes.streams import Pulled, Stopped, gathered, given_file, lines_of, stepped, until_stopped
from ropewalk.nodes.tables import JSON_LINES, MOST_COLUMNS, MOST_ROWS, items_of_lines
from ropewalk.nodes.xlsx_reading import LARGEST, missing_library, opened, rows_of, sheet_named

JSON: TypeAlias = Any
TYPE: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
CHUNK: Final = 512 * 1024
IN_MEMORY: Final = 1024 * 1024
LONGEST_CELL: Final = 32_767
MOST_SHEET_ROWS: Final = 1_048_576
_UNPRINTABLE: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class XlsxRead(NodeType):
    name = "xlsx.read"
    summary = "Reads the rows of a sheet of a workbook (.xlsx)."
    about = About(
        title="Read a workbook",
        category="data",
        icon="file-spreadsheet",
        keywords=("excel", "xlsx", "spreadsheet", "sheet", "table", "rows", "import"),
        output={
            "type": "object",
            "properties": {
                "sheet": {"type": "string", "description": "The sheet that was read."},
                "sheets": {"type": "array", "description": "The names of all sheets."},
                "rows": {"type": "array", "description": "An object for each row; without a header a list of values."},
                "file": {**FILE_SCHEMA, "description": "The rows as JSON Lines, if `as` says file."},
            },
        },
    )
    has_rules = True

    class Parameters(Inputs):
        file: dict[str, JSON] = Field(description="The workbook.", examples=["{{ nodes.load.output.file }}"])
        sheet: str | int | None = Field(
            None, description="Which sheet, by name, or by number from 1; the first by default.", examples=["Orders"]
        )
        header: bool | list[str] = Field(
            True, description="Whether the first row has the names of the columns, or these names.",
            examples=[["id", "total"]],
        )  # fmt: skip
        skip: int = Field(0, ge=0, le=MOST_ROWS, description="How many rows are passed over first.", examples=[1])
        limit: int | None = Field(
            None, ge=0, le=MOST_ROWS, description="How many rows are read at most.", examples=[1000]
        )
        as_: Literal["rows", "file"] = Field(
            "rows", alias="as", description="What is handed on: the `rows`, or a `file` of JSON Lines.",
            examples=["file"],
        )  # fmt: skip

        @model_validator(mode="after")
        def _numbered(self) -> Self:
            if isinstance(self.sheet, int) and self.sheet < 1:
                raise ValueError("sheet is a number from 1")
            return self

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        file = given_file(parameters.file, "with.file")
        if file.size > LARGEST:
            raise NodeFailure.permanent(f"with.file: is larger than {LARGEST // 2**20} MiB; save it as CSV")
        with tempfile.SpooledTemporaryFile(IN_MEMORY) as content:
            async for chunk in context.files.read(file):
                await on_a_thread(content.write, chunk)
            if parameters.as_ == "rows":
                return Output(await until_stopped(lambda stop: _read(content, parameters, stop)))
            reading = _Reading(content, parameters)
            made = await context.files.write(stepped(reading.lines()), f"{file.name}.jsonl", JSON_LINES)
        return Output({**reading.about, "file": as_value(made)})


def _read(content: IO[bytes], how: XlsxRead.Parameters, stop: Event) -> dict[str, JSON]:
    reading, rows = _Reading(content, how), list[JSON]()
    for row in reading.rows():
        if stop.is_set():
            raise Stopped
        rows.append(row)
    return {**reading.about, "rows": rows}


class _Reading:
    """The rows of one sheet, one by one."""

    def __init__(self, content: IO[bytes], how: XlsxRead.Parameters) -> None:
        self._content, self._how = content, how
        self.about: dict[str, JSON] = {}

    def lines(self) -> Iterator[bytes]:
        return gathered(f"{msgspec.json.encode(row).decode()}\n" for row in self.rows())

    def rows(self) -> Iterator[JSON]:
        how = self._how
        with opened(self._content) as workbook:
            sheet = sheet_named(workbook, how.sheet)
            self.about = {"sheet": sheet.title, "sheets": list(workbook.sheetnames)}
            rows = (found for found in rows_of(sheet) if found[0] > how.skip)
            names = _names(how, rows)
            for at, (number, row) in enumerate(rows):
                if at == how.limit:
                    return
                yield row if names is None else _object(names, row, number)


def _names(how: XlsxRead.Parameters, rows: Iterator[tuple[int, list[JSON]]]) -> list[str] | None:
    if how.header is False:
        return None
    names = how.header if isinstance(how.header, list) else [text_of(each) for each in next(rows, (0, []))[1]]
    if len(names) > MOST_COLUMNS:
        raise NodeFailure.permanent(f"with.file: has more than {MOST_COLUMNS:,} columns")
    if twice := next((name for at, name in enumerate(names) if name in names[:at]), None):
        raise NodeFailure.permanent(f"with.file: two columns are called {twice[:64]!r}; name them with header")
    return names


def _object(names: list[str], row: list[JSON], number: int) -> JSON:
    if len(row) > len(names):
        raise NodeFailure.permanent(f"with.file: row {number}: has {len(row)} cells for {len(names)} columns")
    return dict(zip(names, [*row, *[None] * (len(names) - len(row))], strict=True))


class XlsxWrite(NodeType):
    name = "xlsx.write"
    summary = "Writes objects or lists as a sheet of a workbook (.xlsx)."
    about = About(
        title="Write a workbook",
        category="data",
        icon="file-spreadsheet",
        keywords=("excel", "xlsx", "spreadsheet", "sheet", "table", "rows", "export", "report"),
        output={**FILE_SCHEMA, "description": "The workbook, as a file."},
    )
    has_rules = True

    class Parameters(Inputs):
        items: list[JSON] | None = Field(None, description="The list.", examples=["{{ nodes.orders.output }}"])
        file: dict[str, JSON] | None = Field(
            None, description="The items as a file of JSON Lines, in the place of a list.",
            examples=["{{ nodes.rows.output }}"],
        )  # fmt: skip
        columns: list[FieldPath] | None = Field(
            None, min_length=1, max_length=MOST_COLUMNS, examples=[["id", "customer.name"]],
            description="The paths of the fields to write; by default the keys of the first object.",
        )  # fmt: skip
        header: bool = Field(True, description="Whether the first row has the names of the columns.", examples=[False])
        sheet: str = Field(
            "Sheet1", min_length=1, max_length=31, pattern=r"^[^\[\]:*?/\\\x00-\x1f]+$", examples=["Orders"],
            description="What the sheet is called.",
        )  # fmt: skip
        file_name: str = Field(
            "table.xlsx", max_length=LONGEST_NAME, description="What the file is called.", examples=["orders.xlsx"]
        )

        @model_validator(mode="after")
        def _one(self) -> Self:
            if (self.items is None) == (self.file is None):
                raise ValueError("give one of items and file")
            return self

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        items: Iterator[tuple[int, JSON]] = iter(enumerate(parameters.items or [], start=1))
        if parameters.file is not None:
            chunks = context.files.read(given_file(parameters.file, "with.file"))
            items = items_of_lines(lines_of(Pulled(chunks), "with.file"))
        with tempfile.TemporaryFile() as content:
            await until_stopped(lambda stop: _write(content, items, parameters, stop))
            return Output(as_value(await _kept(content, parameters.file_name, context)))


async def _kept(content: IO[bytes], name: str, context: NodeContext) -> File:
    content.seek(0)

    async def chunks() -> AsyncIterator[bytes]:
        while chunk := await on_a_thread(content.read, CHUNK):
            yield chunk

    return await context.files.write(chunks(), name, TYPE)


def _write(content: IO[bytes], items: Iterator[tuple[int, JSON]], how: XlsxWrite.Parameters, stop: Event) -> None:
    try:
        from openpyxl import Workbook
        from openpyxl.cell import WriteOnlyCell
    except ImportError:
        raise missing_library() from None
    workbook = Workbook(write_only=True)
    sheet = workbook.create_sheet(how.sheet)
    try:
        for number, row in enumerate(_rows(items, how), start=1):
            if stop.is_set():
                raise Stopped
            if number > MOST_SHEET_ROWS:
                raise NodeFailure.permanent(f"a sheet has at most {MOST_SHEET_ROWS:,} rows")
            sheet.append([_cell(value, WriteOnlyCell, sheet, number) for value in row])
    except BaseException:
        # The library has the rows in a file of its own until the workbook is saved.
        sheet.close()
        sheet._writer.cleanup()
        raise
    workbook.save(content)


def _rows(items: Iterator[tuple[int, JSON]], how: XlsxWrite.Parameters) -> Iterator[list[JSON]]:
    looks: list[Callable[[JSON], JSON]] | None = None
    known: frozenset[str] = frozenset()
    for at, item in items:
        if how.columns is None and isinstance(item, list):
            yield item
            continue
        if not isinstance(item, dict):
            raise NodeFailure.permanent(f"item {at}: must be an object or a list")
        if looks is None:
            named = how.columns or list(item)
            known = frozenset(named)
            looks = [getter(name) if how.columns else _key(name) for name in named]
            if how.header:
                yield named
        if how.columns is None and (strange := next((key for key in item if key not in known), None)):
            raise NodeFailure.permanent(f"item {at}: the first has no {strange[:64]!r}; give columns")
        yield [look(item) for look in looks]


def _key(name: str) -> Callable[[JSON], JSON]:
    return lambda item: item.get(name)


def _cell(value: JSON, make: Any, sheet: Any, number: int) -> Any:
    """The value as a cell; a text is a text, also if a spreadsheet would take it for a formula."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = _UNPRINTABLE.sub("", text_of(value))
    if len(text) > LONGEST_CELL:
        raise NodeFailure.permanent(f"row {number}: a cell has at most {LONGEST_CELL:,} characters")
    if not text.startswith("="):
        return text
    cell = make(sheet, value=text)
    cell.data_type = "s"
    return cell
