"""Rows as a CSV file and back, as a stream: more of them than a value holds."""

import codecs
import csv
import io
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

from ropewalk.nodes.databases.columns import json_text
from ropewalk.nodes.databases.connection import Row, Rows
from ropewalk.nodes.failure import NodeFailure

BATCH = 500
LONGEST_RECORD = 1024 * 1024
MEDIA_TYPE = "text/csv; charset=utf-8"


class CsvWriting:
    """The rows of a statement as CSV, at most so many; counted on the way."""

    def __init__(self, rows: Rows, limit: int) -> None:
        self._rows = rows
        self._limit = limit
        self.count = 0
        self.is_truncated = False

    async def chunks(self) -> AsyncIterator[bytes]:
        yield _line_of([self._rows.columns])
        while batch := await self._rows.fetch(BATCH):
            kept = batch[: self._limit - self.count]
            self.count += len(kept)
            yield _line_of([[_cell(value) for value in row] for row in kept])
            if len(kept) < len(batch):
                self.is_truncated = True
                return


def _line_of(rows: list[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    return json_text(value) if isinstance(value, list | dict | bool) else value


async def read_csv(chunks: AsyncIterable[bytes]) -> AsyncIterator[tuple[tuple[str, ...], list[Row]]]:
    """The columns, which the first line names, with some rows at a time; a field without text is null."""
    columns: tuple[str, ...] | None = None
    rows: list[Row] = []
    async for record in _records(chunks):
        values = _fields(record)
        if columns is None:
            columns = _header(values)
        elif values:
            if len(values) != len(columns):
                raise NodeFailure.permanent(
                    f"with.file: a line has {len(values)} fields, and the first has {len(columns)}"
                )
            rows.append([value or None for value in values])
            if len(rows) == BATCH:
                yield columns, rows
                rows = []
    if columns is None:
        raise NodeFailure.permanent("with.file: is empty: its first line must name the columns")
    yield columns, rows


def _fields(record: str) -> list[str]:
    try:
        return next(csv.reader([record], strict=True), [])
    except csv.Error as error:
        raise NodeFailure.permanent(f"with.file: {error}") from error


def _header(values: list[str]) -> tuple[str, ...]:
    if len(dict.fromkeys(values)) != len(values) or not all(values):
        raise NodeFailure.permanent("with.file: the first line must name each column once")
    return tuple(values)


async def _records(chunks: AsyncIterable[bytes]) -> AsyncIterator[str]:
    """Each record with its line breaks; one inside of quotes ends none."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    rest = ""
    record: list[str] = []
    length = quotes = 0
    try:
        async for chunk in chunks:
            *lines, rest = (rest + decoder.decode(chunk)).split("\n")
            for line in lines:
                record.append(f"{line}\n")
                length += len(line)
                quotes += line.count('"')
                if quotes % 2 == 0:
                    yield "".join(record)
                    record, length, quotes = [], 0, 0
                elif length > LONGEST_RECORD:
                    raise NodeFailure.permanent("with.file: a quote is never closed, or a line is longer than 1 MiB")
            if len(rest) > LONGEST_RECORD:
                raise NodeFailure.permanent("with.file: a line is longer than 1 MiB")
        last = "".join(record) + rest + decoder.decode(b"", True)
    except UnicodeDecodeError as error:
        raise NodeFailure.permanent("with.file: is no text in UTF-8") from error
    if last:
        yield last
