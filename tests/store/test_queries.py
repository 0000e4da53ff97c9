"""The statements: named once, promised, and in step with the rows and indexes they speak of."""

import asyncio
import inspect
import re

import asyncpg
import pytest

from ropewalk.store.acl import Share
from ropewalk.store.auditing import TABLES
from ropewalk.store.dlq import DeadLetter
from ropewalk.store.executions import Execution
from ropewalk.store.keys import ApiKey
from ropewalk.store.members import Member
from ropewalk.store.offers import Offer
from ropewalk.store.postgres import connection as postgresql
from ropewalk.store.queries import FOLDER, split, statements
from ropewalk.store.queue import QueueEntry
from ropewalk.store.rows import ROWS, LiveRow, RunEntry
from ropewalk.store.sessions import Session
from ropewalk.store.sqlite import SqliteStore
from ropewalk.store.sqlite import connection as sqlite
from ropewalk.store.workers import Worker
from ropewalk.store.workflows import Version, Workflow
from ropewalk.store.workspaces import Workspace
from tests.postgres import PostgresServer
from tests.store.samples import ROOT, ask

TEXT = "\n\n".join(file.read_text() for file in sorted(FOLDER.glob("*.sql")))
CODE = "\n".join(file.read_text() for file in sorted((ROOT / "src").rglob("*.py")))
INDEXED = re.findall(r"(?:^|\n)-- ([a-z_]+): (?:[^\n]*\n--)?[^\n]*Uses ([a-z_]+)\.", TEXT)


@pytest.fixture
def store(sqlite_store: SqliteStore) -> SqliteStore:
    """Only this kind is spoken of here."""
    return sqlite_store


def parameters(text: str) -> int:
    return max((int(number) for number in re.findall(r"\$(\d+)", text)), default=0)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_has_a_field_for_every_parameter_of_its_statement(name: str):
    assert parameters(statements()[name]) == len(ROWS[name])


@pytest.mark.parametrize("name", [name for name in ROWS if name.startswith(("insert", "upsert"))])
def test_an_inserted_row_names_its_columns_in_the_order_of_the_statement(name: str):
    found = re.search(r"insert into \w+ \(([^)]*)\)\s+values \(([^)]*)\)", statements()[name])

    assert found
    columns, values = (re.split(r",\s*", text) for text in found.groups())
    placed = {value: column for column, value in zip(columns, values, strict=True) if value.startswith("$")}
    assert tuple(placed[f"${number}"] for number in range(1, len(placed) + 1)) == ROWS[name]


@pytest.mark.parametrize("name", [name for name in ROWS if name.startswith(("update", "finish", "set", "resolve"))])
def test_a_change_names_its_columns_in_the_order_of_the_statement(name: str):
    assigned = re.findall(r"(\w+) = (?:coalesce\()?\$(\d+)", statements()[name])

    assert tuple(column for column, _ in sorted(assigned, key=lambda pair: int(pair[1]))) == ROWS[name]


@pytest.mark.parametrize(
    ("name", "read_as"),
    [
        ("get_acl", Share),
        ("get_dead_letter", DeadLetter),
        ("get_key", ApiKey),
        ("get_live", LiveRow),
        ("get_member", Member),
        ("get_offer", Offer),
        ("get_queue", QueueEntry),
        ("get_run", RunEntry),
        ("get_session", Session),
        ("get_version", Version),
        ("get_worker", Worker),
        ("get_workflow", Workflow),
        ("get_workspace", Workspace),
        ("load_execution", Execution),
    ],
)
def test_what_is_read_names_its_columns_in_the_order_of_the_statement(name: str, read_as: type):
    columns = re.search(r"select (.*?)\s+from", statements()[name], re.DOTALL)

    assert columns
    assert tuple(re.split(r",\s*", columns[1])) == tuple(inspect.get_annotations(read_as))


@pytest.mark.parametrize("name", statements())
async def test_sqlite_understands_every_statement(store: SqliteStore, name: str):
    text = sqlite.statements()[name]

    assert ask(store.path, f"explain {re.sub(r'[?][0-9]+', 'null', text)}")


@pytest.fixture(scope="module")
def understood(postgres: PostgresServer) -> dict[str, str]:
    """What PostgreSQL says to each statement it does not understand."""
    return asyncio.run(_objections(postgres))


async def _objections(server: PostgresServer) -> dict[str, str]:
    url, found = await server.lend(), {}
    connection = await asyncpg.connect(url)
    for name, text in postgresql.statements().items():
        try:
            await connection.prepare(text)
        except asyncpg.PostgresError as error:
            found[name] = str(error)
    await connection.close()
    await server.take_back(url)
    return found


@pytest.mark.parametrize("name", statements())
def test_postgresql_understands_every_statement(understood: dict[str, str], name: str):
    assert understood.get(name) is None


@pytest.mark.parametrize(("name", "index"), INDEXED)
async def test_a_statement_uses_the_index_it_names(store: SqliteStore, name: str, index: str):
    text = re.sub(r"\?\d+", "'1'", sqlite.statements()[name])

    plan = ask(store.path, f"explain query plan {text}")

    assert any(f"INDEX {index} " in f"{step[3]} " for step in plan), plan


@pytest.mark.parametrize("name", statements())
def test_every_statement_is_carried_out_somewhere(name: str):
    # Those of one table each are named by their table; that a row is made for one does not mean that it is written.
    shared = name.replace("executions_in_", "") in TABLES
    named = len(re.findall(rf'"{name}"', CODE)) - (name in ROWS)

    assert shared or named > 0


def test_many_statements_say_which_index_they_use():
    assert len(INDEXED) >= 15


def test_a_marker_becomes_the_words_of_the_dialect():
    assert "limit $3 for update skip locked)" in postgresql.statements()["take_due_live"]
    assert "limit ?3)" in sqlite.statements()["take_due_live"]


def test_a_script_is_split_without_its_comments():
    assert split("-- one; not two\nselect 1; -- and\nselect 2;\n") == ["select 1", "select 2"]


def test_no_statement_speaks_only_one_dialect():
    assert not re.search(r"pragma|sqlite|rowid|json_each|::|unnest|\breplace into\b", TEXT, re.IGNORECASE)
