"""How PostgreSQL goes about the hot statements once the tables are large: by index, each by the one made for it."""

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from ropewalk.store.bulk import bulk
from ropewalk.store.postgres.bulk import composed
from ropewalk.store.postgres.connection import CHANGING, READING, WRITING, parsed, statements
from ropewalk.store.postgres.together import KINDS, of_many
from ropewalk.store.rows import ROWS
from tests.postgres import PostgresServer
from tests.store.test_queries import INDEXED

FILL = """
insert into workspace select 'w' || n, 'PRO', 5, 0 from generate_series(0, 49) n;
insert into workflow select 'f' || n, 'w' || n % 50, n, 1, null, 0 from generate_series(0, 99) n;
insert into workflow_version select 'f' || n % 100, 1 + n / 100, '', '', 0, '' from generate_series(0, 9999) n;
insert into execution (id, workspace, workflow, version, state, trigger, parent, accepted_at, error)
select 'e' || lpad(n::text, 8, '0'), 'w' || n % 50, 'f' || n % 100, 1,
       (array['SUCCESS', 'SUCCESS', 'SUCCESS', 'SUCCESS', 'FAILED', 'RUNNING', 'PENDING'])[1 + n % 7], 'MANUAL',
       case when n % 10 = 0 then 'e' || n / 10 end, n, case when n % 7 = 4 then 'no' end
  from generate_series(1, 40000) n;
insert into live
select 'e' || lpad(n::text, 8, '0'), 'w' || n % 50, case when n % 2 = 0 then 'o' || n % 100 end, 1, 1,
       case when n % 2 = 1 then n end, case when n % 10 = 0 then 1 else 0 end, 0, null, 5
  from generate_series(1, 20000) n;
insert into queue
select 'e' || lpad(n::text, 8, '0'), 'w' || n % 50, case when n % 3 = 0 then 'CLAIMED' else 'PENDING' end, 5, 1, n, 0, 0
  from generate_series(1, 20000) n;
insert into run
select 'r' || n, 'e' || lpad((n % 5000)::text, 8, '0'), 'a', null, 1,
       (array['SUCCESS', 'SUCCESS', 'SUCCESS', 'DLQ', 'WAITING', 'FAILED'])[1 + n % 6], null, n, 0, 0, null, null, 't'
  from generate_series(1, 40000) n;
insert into offer
select 'o' || n, 'e' || lpad((n % 5000)::text, 8, '0'), 'w' || n % 50, 'a', -1, 1, 'p' || n % 9, '{}', n,
       case when n % 2 = 0 then 'o' || n % 100 end, case when n % 2 = 0 then n end, 1
  from generate_series(1, 20000) n;
insert into inbox select 's' || lpad(n::text, 8, '0'), 'e' || lpad((n % 20000)::text, 8, '0'), '{}', n
  from generate_series(1, 20000) n;
insert into dead_letter
select 'd' || n, 'w' || n % 50, 'r' || n, 'e' || n % 5000, 'f', 'a', null, 1, 'x', 'x', 'x', 'p' || n % 97, null, null,
       n, case when n % 3 = 0 then 'PENDING' else 'REQUEUED' end, null, null, null
  from generate_series(1, 20000) n;
insert into log select 'e' || lpad((n / 10)::text, 8, '0'), n % 10, '' from generate_series(1, 40000) n;
insert into audit select 'a' || n, n, 'w' || n % 50, '', '', '', null, null, null from generate_series(1, 20000) n;
insert into event_wait select 'e' || n, 'a', 0, 1, 'w' || n % 50, 's', null, null from generate_series(1, 20000) n;
insert into idempotency select 'w' || n % 50, 'r', 'k' || n, '', '', n from generate_series(1, 20000) n;
insert into cached_result select 'w' || n % 50, 'k' || n, null, null, null, n from generate_series(1, 20000) n;
insert into api_key (id, workspace, name, hash, role, is_root, created_at, created_by)
select 'k' || n, 'w' || n % 50, '', '', 'viewer', 0, 0, '' from generate_series(1, 20000) n;
insert into trigger_fire
select 'w' || n % 50, 'k' || n, 'w1', n, null, null, null, null from generate_series(1, 20000) n;
insert into worker select 'o' || n, 1, '', 1, '', '', 0, 0, 0, n, 0, 0 from generate_series(1, 100) n
"""
HOT = [
    "claim_live", "claim_keyed_live", "claim_queue", "claimable", "count_slots", "due_live", "get_live", "last_entry",
    "lease_offers", "list_executions", "list_failed_executions", "list_inbox", "list_runs",
    "list_workflow_executions", "log_entries", "next_wake", "owned_live",
    "take_due_live", "take_over_live", "whole_logs", "written_rows", "event_waits_of", "offers_of", "versions_of",
]  # fmt: skip
READ = ("owning_workers", "whole_logs", "written_rows", "event_waits_of", "offers_of", "versions_of")
# A table of one row per worker or per workspace is read faster without an index.
SMALL = ("worker", "workspace")
VALUES = {"text": "'w1'", "int8": "50", "int4": "1", "bytea": "''"}
ARGUMENTS = {
    "list_executions": "'w1', '~', null, null, null, 0, 99999, '', 50, null, 1, null, null",
    "list_failed_executions": "'w1', '~', null, 'FAILED', null, 0, 99999, '', 50, null, 1, null, null",
    "list_workflow_executions": "'w1', '~', 'f1', null, null, 0, 99999, '', 50, null, 1, null, null",
    "list_live_executions": "'w1', '~', null, 'RUNNING', null, 0, 99999, '', 50, null, 1, null, null",
    "list_runs": "'e00000005', '', null, null, 50",
    "search_execution_dead_letters": "'w5', 'PENDING', '~', null, null, 0, 99999, null, 'e5', 50",
    "owned_live": "'o2', '', 50",
    "due_live": "99999, 50",
    "take_due_live": "'o2', 99999, 50",
    "claimable": "'w1', 99999, 50",
    "claim_live": """'["e00000005"]', 'w1'""",
    "claim_queue": """'["e00000005"]', 'w1', 50""",
    "whole_logs": """'["e00000005"]'""",
    "written_rows": """'["e00000005"]'""",
    "event_waits_of": """'["e5"]'""",
    "versions_of": """'["e00000005"]'""",
    "offers_of": """'["e00000005"]'""",
    "owning_workers": """'["o2"]', 50""",
}
"""Where it matters that they are likely ones."""
ONLY_NAMED = ("key_holders",)
"""Few rows answer these, or none in this filling: which index is the planner's own choice."""


@pytest.fixture(scope="module")
def filled(postgres: PostgresServer) -> Iterator[str]:
    """A database with tables large enough to matter."""
    url = asyncio.run(_fill(postgres))
    yield url
    asyncio.run(postgres.drop_database(url))


async def _fill(postgres: PostgresServer) -> str:
    url = await postgres.create_database()
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(FILL)
        await connection.execute("analyze")
    finally:
        await connection.close()
    return url


async def plan(
    url: str, text: str, settings: dict[str, str], *, is_generic: bool = False, arguments: str | None = None
) -> str:
    """How the statement would be carried out on a connection with these settings."""
    connection = await parsed(url, is_pooled=False).connect(settings, "test")
    try:
        if is_generic:
            await connection.execute(f"prepare batch as {text}")
            count = max(int(number) for number in re.findall(r"\$(\d+)", text))
            text = f"execute batch({', '.join(['null'] * count)})"
        else:
            text = await _with_values(connection, text, arguments)
        rows = await connection.fetch(f"explain {text}")
    finally:
        await connection.close()
    return "\n".join(row[0] for row in rows)


async def _with_values(connection: Any, text: str, arguments: str | None) -> str:
    kinds = [parameter.name for parameter in (await connection.prepare(text)).get_parameters()]
    values = [VALUES[kind] for kind in kinds] if arguments is None else arguments.split(", ")
    return re.sub(r"\$(\d+)", lambda number: values[int(number[1]) - 1], text)


def settings_for(name: str) -> dict[str, str]:
    """Those of the connections it is asked on."""
    return READING if name.startswith("list_") or name in READ else CHANGING


def scanned(found: str) -> set[str]:
    """The tables read from one end to the other."""
    return set(re.findall(r"Seq Scan on (\w+)", found)) - set(SMALL)


@pytest.mark.parametrize("name", HOT)
async def test_a_hot_statement_reads_no_table_from_end_to_end(filled: str, name: str):
    found = await plan(filled, statements()[name], settings_for(name), arguments=ARGUMENTS.get(name))

    assert scanned(found) == set(), found


@pytest.mark.parametrize("name", KINDS)
async def test_a_question_of_many_callers_reads_no_table_from_end_to_end(filled: str, name: str):
    text = re.sub(r"cast\(\$\d+ as (\w+)\[\]\)", r"array_fill(cast('7' as \1), array[20])", of_many(name))

    found = await plan(filled, text, READING, arguments="")

    assert scanned(found) == set(), found


@pytest.mark.parametrize(("name", "index"), [pair for pair in INDEXED if pair[0] not in ONLY_NAMED])
async def test_a_statement_uses_the_index_it_names_on_postgresql_too(filled: str, name: str, index: str):
    found = await plan(filled, statements()[name], settings_for(name), arguments=ARGUMENTS.get(name))

    assert re.search(rf"\b{index}\b", found), found


@pytest.mark.parametrize("is_burst", [False, True])
@pytest.mark.parametrize("name", [name for name in ROWS if not name.startswith("insert")])
async def test_a_batch_finds_its_rows_by_their_keys_in_a_table_of_any_size(filled: str, name: str, is_burst: bool):
    connection = await asyncpg.connect(filled)
    types = [parameter.name for parameter in (await connection.prepare(statements()[name])).get_parameters()]
    await connection.close()
    text = composed([(name, bulk(name).alike if is_burst else ())], {name: types}, is_fenced=True)

    found = await plan(filled, text, dict(WRITING), is_generic=True)

    assert scanned(found) == set(), found
    assert "Hash Join" not in found
    assert re.search(rf"{bulk(name).table}_(pkey|by_execution)|Conflict Arbiter Indexes", found)
