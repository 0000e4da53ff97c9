"""`sql.query`: a user's database by credential, in one transaction, with bound parameters only."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, TypeAlias

import msgspec
from pydantic import AfterValidator, Field, field_validator, model_validator

from ropewalk.core.duration import HOUR, SECOND, format_duration, parse_duration
from ropewalk.core.errors import Problem
from ropewalk.nodes.base import About, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.databases.connection import Connection, Rows, Terms
from ropewalk.nodes.databases.pools import Databases
from ropewalk.nodes.databases.table_files import MEDIA_TYPE, CsvWriting
from ropewalk.nodes.files import FILE_SCHEMA, as_value
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.sql_text import LONGEST_TEXT, Statement, Values, check_text, parsed

JSON: TypeAlias = Any

MOST_LISTED = 100_000
MOST_ROWS = 10_000_000
USUAL_ROWS = 1_000
SHORTEST = SECOND // 10
MOST_BYTES = 48 * 1024 * 1024
MOST_STATEMENTS = 100
BATCH = 500
TYPES = ("postgres", "mysql", "sqlite")
WORDS = ("database", "postgres", "postgresql", "mysql", "mariadb", "sqlite", "table", "rows")

Sql = Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT), AfterValidator(check_text)]


def _a_length(timeout: JSON) -> JSON:
    if parse_duration(timeout, SHORTEST) > HOUR:
        raise ValueError("must be at most 1h")
    return timeout


class Timed(Inputs):
    """How long the statements may take."""

    timeout: float | str = Field(
        "60s", description="How long the statements may take together: like 30s, 5m, or a number of seconds.",
        examples=["5m"],
    )  # fmt: skip

    _checked = field_validator("timeout", mode="before")(_a_length)

    @property
    def seconds(self) -> float:
        return parse_duration(self.timeout, SHORTEST) / SECOND


class SqlStatement(Inputs):
    """A statement and its values."""

    query: Sql = Field(
        description="The SQL text, without expressions; `$1` or `:name` stands for a value.",
        examples=["update orders set state = :state where id = :id"],
    )
    parameters: list[JSON] | dict[str, JSON] = Field(
        [], description="The values: a list for `$1`, `$2` …, an object for `:name`.", examples=[{"id": 7}, [7]]
    )


class SqlNode(NodeType):
    """A type that works on a database."""

    credentials = MappingProxyType({"": TYPES})
    has_rules = True

    @asynccontextmanager
    async def transaction(self, context: NodeContext, terms: Terms) -> AsyncIterator[tuple[Connection, str]]:
        """A connection of the node's credential in one transaction, and the type of the database."""
        credential = await context.credential("", *TYPES)
        if credential is None:
            raise NodeFailure.permanent("names no credential: write `credentials: <name>` beside `with`")
        pool = context.facilities.opened(Databases).pool(context, credential)
        try:
            async with asyncio.timeout(terms.seconds), pool.transaction(terms) as connection:
                yield connection, credential.type
        except TimeoutError as error:
            limit = format_duration(int(terms.seconds * SECOND))
            raise NodeFailure.timeout(f"the statements took longer than {limit}, and were cancelled") from error


async def _as_file(rows: Rows, limit: int, context: NodeContext) -> JSON:
    writing = CsvWriting(rows, limit)
    file = await context.files.write(writing.chunks(), "rows.csv", MEDIA_TYPE)
    about = {"file": as_value(file), "count": writing.count, "columns": rows.columns}
    return {**about, "isTruncated": writing.is_truncated, "affected": rows.affected}


class SqlQuery(SqlNode):
    name = "sql.query"
    summary = "Carries out SQL statements in one transaction, with bound parameters."
    about = About(
        title="Query a database",
        category="reach",
        icon="database",
        keywords=(*WORDS, "select", "update", "delete", "transaction"),
        output={
            "type": "object",
            "properties": {
                "rows": {"type": "array", "description": "The rows as objects (of one query)."},
                "file": {**FILE_SCHEMA, "description": "The rows as a CSV file (rowsAs: csv)."},
                "count": {"type": "integer", "description": "How many rows these are."},
                "columns": {"type": "array", "description": "The names of the columns."},
                "isTruncated": {"type": "boolean", "description": "Whether there are more rows than `limit`."},
                "affected": {
                    "type": ["integer", "null"],
                    "description": "How many rows the statement changed; null if it gives rows.",
                },
                "results": {"type": "array", "description": "The same for each of `statements`."},
            },
        },
    )
    literal = ("query", "statements.*.query")

    def problems_in(self, constant: Mapping[str, Any]) -> Sequence[Problem]:
        """What no database could carry out, also if the parameters hold expressions."""
        try:
            check_text(constant.get("query", "select 1"))
        except ValueError as error:
            return [Problem(("query",), str(error))]
        return []

    class Parameters(Timed):
        query: Sql | None = Field(
            None, description="The SQL text, without expressions; `$1` or `:name` stands for a value.",
            examples=["select id, total from orders where customer = :customer"],
        )  # fmt: skip
        parameters: list[JSON] | dict[str, JSON] = Field(
            [], description="The values: a list for `$1`, `$2` …, an object for `:name`.",
            examples=[{"customer": "{{ input.customer }}"}, ["{{ input.id }}"]],
        )  # fmt: skip
        statements: list[SqlStatement] | None = Field(
            None, min_length=1, max_length=MOST_STATEMENTS,
            description="Several statements in place of `query`: all of them happen, or none.",
            examples=[[{"query": "delete from cart where id = $1", "parameters": [7]}]],
        )  # fmt: skip
        limit: int | None = Field(
            None, ge=1, le=MOST_ROWS, examples=[100],
            description="At most so many rows of each statement: 1,000 by default, and 100,000 at most as a list.",
        )  # fmt: skip
        rows_as: Literal["list", "csv"] = Field(
            "list", description="Whether the rows are a list, or a CSV file for many of them.", examples=["csv"]
        )
        read_only: bool = Field(False, description="Whether the database refuses every change.", examples=[True])

        @model_validator(mode="after")
        def _one_of_both(self) -> Self:
            if (self.query is None) == (self.statements is None):
                raise ValueError("give query or statements")
            if self.statements is not None and self.parameters:
                raise ValueError("parameters go with query; each of statements has its own")
            if self.rows_as == "csv" and self.query is None:
                raise ValueError("rowsAs: csv goes with query")
            if self.rows_as == "list" and (self.limit or 0) > MOST_LISTED:
                raise ValueError(f"limit must be at most {MOST_LISTED:,} as a list; use rowsAs: csv")
            return self

        @property
        def most(self) -> int:
            """How many rows of a statement are handed on."""
            return self.limit or (USUAL_ROWS if self.rows_as == "list" else MOST_ROWS)

        def all(self) -> list[tuple[str, Values]]:
            """The texts with their values."""
            if self.query is not None:
                return [(self.query, self.parameters)]
            return [(each.query, each.parameters) for each in self.statements or ()]

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        results: list[JSON] = []
        size = 0
        terms = Terms(parameters.seconds, parameters.most + 1, parameters.read_only)
        async with self.transaction(context, terms) as (connection, kind):
            for text, values in parameters.all():
                rows = await _executed(connection, _statement(text, kind), values)
                if parameters.rows_as == "csv":
                    return Output(await _as_file(rows, parameters.most, context))
                result, size = await _read(rows, parameters.most, size)
                results.append(result)
        return Output(results[0] if parameters.query is not None else {"results": results})


def _statement(text: str, kind: str) -> Statement:
    try:
        return parsed(text, is_mysql=kind == "mysql")
    except ValueError as error:
        raise NodeFailure.permanent(f"with.query: {error}") from error


async def _executed(connection: Connection, statement: Statement, values: Values) -> Rows:
    try:
        return await connection.execute(statement, values)
    except ValueError as error:
        raise NodeFailure.permanent(f"with.parameters: {error}") from error


async def _read(rows: Rows, limit: int, size: int) -> tuple[JSON, int]:
    """What a statement gave, and how many bytes all of them gave by now."""
    found: list[JSON] = []
    while len(found) <= limit:
        batch = await rows.fetch(min(BATCH, limit + 1 - len(found)))
        if not batch:
            break
        objects = [dict(zip(rows.columns, row, strict=True)) for row in batch]
        size += len(msgspec.json.encode(objects))
        if size > MOST_BYTES:
            raise NodeFailure.permanent(f"the rows are larger than {MOST_BYTES // 2**20} MiB: ask for fewer of them")
        found += objects
    kept = found[:limit]
    result = {"rows": kept, "count": len(kept), "columns": rows.columns, "isTruncated": len(found) > limit}
    return {**result, "affected": rows.affected}, size
