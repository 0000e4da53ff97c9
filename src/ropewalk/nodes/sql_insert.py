"""`sql.insert`: rows of a list or of a CSV file into a table of a user's database, in one transaction."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Annotated, Any, Literal, Self, TypeAlias

import msgspec
from pydantic import Field, model_validator

from ropewalk.nodes.base import About, NodeContext, NodeFailure, Output
from ropewalk.nodes.databases.connection import Insertion, Row, Terms
from ropewalk.nodes.databases.table_files import read_csv
from ropewalk.nodes.files import File, file_of
from ropewalk.nodes.sql import WORDS, SqlNode, Timed

JSON: TypeAlias = Any

MOST_COLUMNS = 1_000
MOST_TOGETHER = 1_000
LARGEST_BATCH = 1024 * 1024

Name = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]+$")]


class SqlInsert(SqlNode):
    name = "sql.insert"
    summary = "Writes many rows into a table in one transaction; rows whose key is there can be updated or left."
    about = About(
        title="Insert into a database",
        category="reach",
        icon="database",
        keywords=(*WORDS, "insert", "upsert", "bulk", "load"),
        output={
            "type": "object",
            "properties": {
                "count": {"type": "integer", "description": "How many rows were given."},
                "affected": {
                    "type": "integer",
                    "description": "How many rows the database says it wrote; MySQL counts an updated one twice.",
                },
            },
        },
    )
    literal = ("table", "columns", "keys", "update")

    class Parameters(Timed):
        table: Name = Field(description="The table; `schema.table` for one of a schema.", examples=["orders"])
        rows: list[dict[str, JSON]] | None = Field(
            None, description="The rows, as objects by column; a column that a row lacks is null.",
            examples=[[{"id": 1, "total": "12.50"}]],
        )  # fmt: skip
        file: dict[str, JSON] | None = Field(
            None,
            description="A CSV file in place of `rows`: its first line names the columns, and an empty field is null.",
            examples=["{{ nodes.download.output.file }}"],
        )
        columns: list[Name] | None = Field(
            None, min_length=1, max_length=MOST_COLUMNS, examples=[["id", "total"]],
            description="The columns that are written; by default all that the rows have.",
        )  # fmt: skip
        on_conflict: Literal["fail", "ignore", "update"] = Field(
            "fail", description="What is done with a row whose key is there already.", examples=["update"]
        )
        keys: list[Name] = Field(
            [], max_length=32, examples=[["id"]],
            description="The columns of that key; MySQL takes every unique key of the table.",
        )  # fmt: skip
        update: list[Name] | None = Field(
            None, max_length=MOST_COLUMNS, examples=[["total"]],
            description="The columns that are updated then; by default all but the keys.",
        )  # fmt: skip

        @model_validator(mode="after")
        def _fits(self) -> Self:
            if (self.rows is None) == (self.file is None):
                raise ValueError("give rows or file")
            if self.on_conflict == "fail" and (self.keys or self.update):
                raise ValueError("keys and update go with onConflict")
            if self.on_conflict == "update" and not self.keys:
                raise ValueError("onConflict: update needs keys")
            if self.on_conflict == "ignore" and self.update:
                raise ValueError("update goes with onConflict: update")
            return self

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        count = affected = 0
        async with self.transaction(context, Terms(parameters.seconds)) as (connection, _):
            async for columns, rows in _given(parameters, context):
                insertion = _insertion(parameters, columns)
                for batch in _batches(rows):
                    affected += await connection.insert(insertion, batch)
                    count += len(batch)
        return Output({"count": count, "affected": affected})


async def _given(how: SqlInsert.Parameters, context: NodeContext) -> AsyncIterator[tuple[tuple[str, ...], list[Row]]]:
    """The columns with some rows at a time."""
    if how.rows is not None:
        columns = tuple(how.columns or dict.fromkeys(name for row in how.rows for name in row))
        if columns:
            _require_columns(how, columns)
            yield columns, [[row.get(name) for name in columns] for row in how.rows]
        return
    async for columns, rows in read_csv(context.files.read(_file(how.file))):
        wanted = tuple(how.columns or columns)
        if missing := next((name for name in wanted if name not in columns), None):
            raise NodeFailure.permanent(f"with.columns: the file has no column {missing!r}")
        _require_known(how, wanted)
        places = [columns.index(name) for name in wanted]
        yield wanted, [[row[at] for at in places] for row in rows]


def _file(value: JSON) -> File:
    file = file_of(value)
    if file is None:
        raise NodeFailure.permanent("with.file: is no file: hand on the value that a node or an upload gave")
    return file


def _require_columns(how: SqlInsert.Parameters, columns: Sequence[str]) -> None:
    _require_known(how, columns)
    known = frozenset(columns)
    for at, row in enumerate(how.rows or ()):
        if extra := next((name for name in row if name not in known), None):
            raise NodeFailure.permanent(f"with.rows[{at}]: has {extra!r}, which is not among the columns")


def _require_known(how: SqlInsert.Parameters, columns: Sequence[str]) -> None:
    if len(columns) > MOST_COLUMNS:
        raise NodeFailure.permanent(f"with.rows: have more than {MOST_COLUMNS:,} columns")
    if missing := next((name for name in (*how.keys, *(how.update or ())) if name not in columns), None):
        raise NodeFailure.permanent(f"with.keys: no row has the column {missing!r}")


def _insertion(how: SqlInsert.Parameters, columns: tuple[str, ...]) -> Insertion:
    others = tuple(name for name in columns if name not in how.keys)
    update = () if how.on_conflict != "update" else others if how.update is None else tuple(how.update)
    is_upsert = how.on_conflict != "fail"
    return Insertion(tuple(how.table.split(".")), columns, tuple(how.keys), update, is_upsert)


def _batches(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """The rows in pieces that a database takes as one statement."""
    begun = size = 0
    for at, row in enumerate(rows):
        size += len(msgspec.json.encode(row))
        if size > LARGEST_BATCH or at - begun >= MOST_TOGETHER:
            if at > begun:
                yield rows[begun:at]
            begun, size = at, 0
    if begun < len(rows):
        yield rows[begun:]
