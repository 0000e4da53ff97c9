"""`sql.query` and `sql.insert` against real databases."""

import asyncio
import base64
import hashlib
import ssl

import pytest

from ropewalk.core.definition import parse_definition
from ropewalk.core.errors import ErrorType, InvalidDefinition
from ropewalk.nodes.base import Facilities, NodeFailure, Registry
from ropewalk.nodes.credential_trials import tried
from ropewalk.nodes.credentials import Credential
from ropewalk.nodes.databases.pools import Databases
from ropewalk.nodes.files import File, as_value
from ropewalk.nodes.network import NetworkPolicy
from ropewalk.nodes.sql_text import check_text, parsed
from tests.certificates import write_certificate
from tests.mariadb import MariadbServer
from tests.postgres import ask

from .conftest import context_of

SECRET = "s3cret-of-a-database"
KINDS = ("postgres", "mysql", "sqlite")
PEOPLE = "create table people (id bigint primary key, name varchar(40), paid decimal(12, 2))"
PAUSE = {"postgres": "pg_sleep", "mysql": "sleep"}
TAKES_LONG = {
    "postgres": f"select {PAUSE['postgres']}(60)",
    "mysql": f"select {PAUSE['mysql']}(60)",
    "sqlite": "with recursive n(x) as (select 1 union all select x + 1 from n) select max(x) from n",
}
STILL_RUNS = {
    "postgres": "select count(*) as n from pg_stat_activity where query like 'select pg_sl%' and state = 'active'",
    "mysql": "select count(*) as n from information_schema.processlist where info like 'select sl%'",
}


class Kept:
    """Credentials as a store would give them."""

    def __init__(self):
        self.credentials = {}

    async def get(self, workspace, name):
        return self.credentials[name]


@pytest.fixture(scope="session")
def mariadb():
    server = MariadbServer()
    yield server
    server.remove()


@pytest.fixture
def kept(facilities):
    facilities.credentials = Kept()
    return facilities.credentials


@pytest.fixture
async def postgres_values(postgres):
    url = await postgres.create_database(is_empty=True)
    yield {
        "host": "127.0.0.1", "port": postgres.port, "database": url.rpartition("/")[2], "username": "postgres",
        "password": SECRET, "tls": "none",
    }  # fmt: skip
    await postgres.drop_database(url)


@pytest.fixture
async def db(request, kept, run, mariadb, postgres_values, facilities, tmp_path):
    """Runs a node on a database of the kind that the test is about."""
    kind = request.param
    values = {"mysql": mariadb.values, "postgres": postgres_values, "sqlite": {"path": "shop.db"}}[kind]
    facilities.files_root = str(tmp_path)
    (tmp_path / "w1").mkdir(exist_ok=True)
    (tmp_path / "w1" / "shop.db").touch()
    kept.credentials["db"] = Credential("db", kind, values)

    class Database:
        def __init__(self):
            self.kind = kind
            self.values = values

        async def query(self, text, parameters=(), **more):
            return await self.run("sql.query", {"query": text, "parameters": _as_given(parameters), **more})

        async def insert(self, rows, **more):
            return await self.run("sql.insert", {"table": "people", "rows": rows, **more})

        async def rows(self, text, parameters=()):
            return (await self.query(text, parameters))["rows"]

        async def run(self, name, inputs):
            return (await run(name, inputs, get_credentials=lambda: "db")).value

        async def failure(self, text, parameters=(), **more):
            with pytest.raises(NodeFailure) as caught:
                await self.query(text, parameters, **more)
            return caught.value.error

    opened = Database()
    await opened.query("drop table if exists people")
    await opened.query(PEOPLE)
    return opened


def _as_given(parameters):
    return list(parameters) if isinstance(parameters, tuple) else parameters


every_database = pytest.mark.parametrize("db", KINDS, indirect=True)
every_server = pytest.mark.parametrize("db", ["postgres", "mysql"], indirect=True)
only_sqlite = pytest.mark.parametrize("db", ["sqlite"], indirect=True)
only_postgres = pytest.mark.parametrize("db", ["postgres"], indirect=True)
only_mysql = pytest.mark.parametrize("db", ["mysql"], indirect=True)


@every_database
async def test_rows_are_written_and_read_with_bound_parameters(db):
    changed = await db.query("insert into people (id, name, paid) values ($1, $2, $3)", (1, "Ada", "12.50"))

    found = await db.query("select * from people where name = :name or name = :name", {"name": "Ada"})

    exact = {"sqlite": 12.5}.get(db.kind, "12.50")  # SQLite has no exact decimals
    assert (changed["affected"], changed["rows"]) == (1, [])
    assert found == {
        "rows": [{"id": 1, "name": "Ada", "paid": exact}],
        "count": 1,
        "columns": ["id", "name", "paid"],
        "isTruncated": False,
        "affected": None,
    }


@every_database
@pytest.mark.parametrize(
    "value",
    ["'; drop table people; --", "\\'; drop table people; --", 'a"b`c', "%s %(x)s $1 :a ?", "naïve 🙂", "", "\\"],
)
async def test_a_value_is_never_part_of_the_text(db, value):
    await db.query("insert into people (id, name) values (1, $1)", (value,))

    assert await db.rows("select name from people where name = $1", (value,)) == [{"name": value}]


@every_database
async def test_several_statements_happen_together_or_not_at_all(db):
    with pytest.raises(NodeFailure) as caught:
        await db.run("sql.query", {"statements": [
            {"query": "insert into people (id, name) values (1, 'Ada')"},
            {"query": "insert into people (id, name) values ($1, 'Bob')", "parameters": [1]},
        ]})  # fmt: skip
    both = await db.run("sql.query", {"statements": [
        {"query": "insert into people (id, name) values (:id, 'Cy')", "parameters": {"id": 2}},
        {"query": "select count(*) as n from people"},
    ]})  # fmt: skip

    assert caught.value.error.type is ErrorType.PERMANENT
    assert [result["affected"] for result in both["results"]] == [1, None]
    assert both["results"][1]["rows"] == [{"n": 1}]


@every_database
async def test_no_more_rows_are_read_than_asked_for(db):
    await db.insert([{"id": at} for at in range(2_500)])

    some = await db.query("select id from people order by id", limit=2)
    all_ = await db.query("select id from people order by id", limit=2_500)

    assert (some["rows"], some["count"], some["isTruncated"]) == ([{"id": 0}, {"id": 1}], 2, True)
    assert (all_["count"], all_["isTruncated"], all_["rows"][-1]) == (2_500, False, {"id": 2_499})


@every_database
async def test_many_rows_are_inserted_and_those_that_are_there_updated(db):
    first = await db.insert([{"id": at, "name": "old"} for at in range(1_500)])
    await db.insert([{"id": 1, "name": "new", "paid": 1.5}, {"id": 9_999}], onConflict="update", keys=["id"])
    left = await db.insert([{"id": 2, "name": "never"}, {"id": 9_998}], onConflict="ignore", keys=["id"])
    await db.insert([{"id": 3, "name": "no", "paid": 2}], onConflict="update", keys=["id"], update=["paid"])

    rows = await db.rows("select id, name, paid from people where id in (1, 2, 3, 9998, 9999) order by id")
    assert first == {"count": 1_500, "affected": 1_500}
    assert (left["count"], left["affected"]) == (2, 1)
    assert [(row["id"], row["name"], row["paid"] and float(row["paid"])) for row in rows] == [
        (1, "new", 1.5), (2, "old", None), (3, "old", 2), (9_998, None, None), (9_999, None, None),
    ]  # fmt: skip


@every_database
async def test_the_last_of_rows_with_one_key_is_kept(db):
    await db.insert([{"id": 1, "name": "a"}, {"id": 1, "name": "b"}], onConflict="update", keys=["id"])

    assert await db.rows("select name from people") == [{"name": "b"}]


@every_database
async def test_an_insert_that_fails_leaves_nothing(db):
    with pytest.raises(NodeFailure) as caught:
        await db.insert([{"id": at} for at in [*range(1_500), 7]])

    assert caught.value.error.type is ErrorType.PERMANENT
    assert await db.rows("select count(*) as n from people") == [{"n": 0}]


@every_database
@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("selec 1", ()),
        ("select * from nowhere", ()),
        ("select 1 / :x as n, :y", {"x": 1}),
        ("select 1", {"x": 1}),
        ("insert into people (id) values (1), (1)", ()),
    ],
)
async def test_what_cannot_work_is_a_permanent_failure(db, text, parameters):
    error = await db.failure(text, parameters)

    assert error.type is ErrorType.PERMANENT


@every_server
async def test_a_statement_that_takes_too_long_is_cancelled_at_the_server(db):
    error = await db.failure(TAKES_LONG[db.kind], timeout=0.3)

    assert error.type is ErrorType.TIMEOUT
    assert "0.3s" in error.message or "300ms" in error.message
    assert await db.rows(STILL_RUNS[db.kind]) == [{"n": 0}]


@every_server
async def test_a_node_that_is_stopped_cancels_its_statement(db):
    running = asyncio.ensure_future(db.query(TAKES_LONG[db.kind]))
    async with asyncio.timeout(10):
        while await db.rows(STILL_RUNS[db.kind]) != [{"n": 1}]:
            pass

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert await db.rows(STILL_RUNS[db.kind]) == [{"n": 0}]


@every_database
async def test_what_only_reads_changes_nothing(db):
    error = await db.failure("insert into people (id) values (1)", readOnly=True)

    assert error.type is ErrorType.PERMANENT
    assert (await db.query("select 1 as one", readOnly=True))["rows"] == [{"one": 1}]


@every_server
async def test_a_deadlock_is_worth_another_attempt(db):
    await db.insert([{"id": 1}, {"id": 2}])

    async def update(first, second):
        text = "update people set name = 'x' where id = $1"
        waits = f"select {PAUSE[db.kind]}(0.2)"
        steps = [{"query": text, "parameters": [first]}, {"query": waits}, {"query": text, "parameters": [second]}]
        return await db.run("sql.query", {"statements": steps})

    [one, other] = await asyncio.gather(update(1, 2), update(2, 1), return_exceptions=True)

    failed = [each for each in (one, other) if isinstance(each, NodeFailure)]
    assert [each.error.type for each in failed] == [ErrorType.TRANSIENT]


@every_server
async def test_a_server_that_is_not_there_is_worth_another_attempt(db, kept):
    kept.credentials["db"] = Credential("db", db.kind, {**db.values, "port": 1})

    error = await db.failure("select 1")

    assert error.type is ErrorType.TRANSIENT


@every_server
@pytest.mark.parametrize("says", [b"", b"HTTP/1.1 200 OK\r\n\r\n", b"\xff" * 70_000, b"\0\0\0\0" * 1_000])
async def test_a_server_that_speaks_nonsense_is_a_failure(db, kept, peer, says):
    stranger = await peer(says, is_asked=False)
    kept.credentials["db"] = Credential("db", db.kind, {**db.values, "port": stranger.port})

    error = await db.failure("select 1", timeout=5)

    assert "the database" in error.message


@every_server
async def test_a_server_that_says_nothing_is_given_up_in_time(db, kept, peer):
    silent = await peer(None, is_asked=False)
    kept.credentials["db"] = Credential("db", db.kind, {**db.values, "port": silent.port})

    error = await db.failure("select 1", timeout=0.3)

    assert error.type is ErrorType.TIMEOUT


@every_server
async def test_a_wrong_password_or_database_is_a_permanent_failure_that_tells_no_secret(db, kept, postgres):
    wrong = {"username": "locked", "password": SECRET} if db.kind == "postgres" else {"password": SECRET}
    kept.credentials["db"] = Credential("db", db.kind, {**db.values, **wrong})

    error = await db.failure("select 1")

    assert error.type is ErrorType.PERMANENT
    assert SECRET not in f"{error.message} {error.detail}"


@every_database
async def test_a_credential_is_tried(db, facilities):
    context = context_of(facilities)
    wrong = {"postgres": {"database": "nowhere"}, "mysql": {"password": "x"}, "sqlite": {"path": "nowhere.db"}}[db.kind]

    assert await tried(Credential("db", db.kind, db.values), context) == "the database lets it in"
    with pytest.raises(NodeFailure):
        await tried(Credential("db", db.kind, {**db.values, **wrong}), context)


@every_server
async def test_a_private_address_is_refused_where_it_is_not_allowed(db, registry):
    guarded = Facilities()
    guarded.credentials = Kept()
    guarded.credentials.credentials["db"] = Credential("db", db.kind, db.values)
    node_type = registry.get("sql.query")
    context = context_of(guarded, get_credentials=lambda: "db")

    with pytest.raises(NodeFailure, match="is not on the public internet") as caught:
        await node_type.run(node_type.accept({"query": "select 1"}), context)

    assert caught.value.error.type is ErrorType.PERMANENT
    await guarded.close()


@every_server
async def test_a_credential_is_for_its_hosts_alone(db, kept):
    kept.credentials["db"] = Credential("db", db.kind, db.values, hosts=("db.example.org",))

    error = await db.failure("select 1")

    assert error.type is ErrorType.PERMANENT
    assert "db.example.org" in error.message


class TlsDoor:
    """Speaks TLS as PostgreSQL does, in front of a server that was built without."""

    def __init__(self, folder, port):
        self.authority = write_certificate(folder, "db.test")
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        self._behind = port

    async def handle(self, reader, writer):
        try:
            assert await reader.readexactly(8) == b"\0\0\0\x08\x04\xd2\x16\x2f"
            writer.write(b"S")
            await writer.start_tls(self._context)
            inner_reader, inner = await asyncio.open_connection("127.0.0.1", self._behind)
            await asyncio.gather(pipe(reader, inner), pipe(inner_reader, writer))
        except (ssl.SSLError, OSError):
            writer.close()


async def pipe(reader, writer):
    while data := await reader.read(65_536):
        writer.write(data)
    writer.close()


@pytest.fixture
async def secure(postgres, mariadb, tmp_path):
    """Servers with certificates of `db.test`: where they are, and the authority of each."""
    door = TlsDoor(tmp_path, postgres.port)
    server = await asyncio.start_server(door.handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    yield {"postgres": (port, door.authority), "mysql": (mariadb.port, mariadb.authority)}
    server.close()
    await server.wait_closed()


@every_server
@pytest.mark.parametrize(
    ("host", "tls", "is_known", "is_let_in"),
    [
        ("db.test", "verify", True, True),
        ("db.test", "verify", False, False),
        ("other.test", "verify", True, False),
        ("other.test", "require", False, True),
    ],
)
async def test_a_certificate_must_be_of_the_name_and_known(db, registry, secure, host, tls, is_known, is_let_in):
    async def resolve(host, port):
        return ["127.0.0.1"]

    guarded = Facilities(NetworkPolicy(allow=("127.0.0.1", "db.test", "other.test")), resolve=resolve)
    guarded.credentials = Kept()
    port, authority = secure[db.kind]
    values = {**db.values, "host": host, "port": port, "tls": tls, "ca": authority if is_known else None}
    guarded.credentials.credentials["db"] = Credential("db", db.kind, values)
    node_type = registry.get("sql.query")
    asked = node_type.run(
        node_type.accept({"query": "select 1 as one"}), context_of(guarded, get_credentials=lambda: "db")
    )

    if is_let_in:
        assert (await asked).value["rows"] == [{"one": 1}]
    else:
        with pytest.raises(NodeFailure) as caught:
            await asked
        assert caught.value.error.type is ErrorType.PERMANENT
    await guarded.close()


@only_postgres
async def test_tls_is_not_given_up_for_a_server_that_has_none(db, kept):
    kept.credentials["db"] = Credential("db", db.kind, {**db.values, "tls": "verify"})

    error = await db.failure("select 1")

    assert error.type is ErrorType.PERMANENT


@every_server
async def test_a_connection_serves_one_node_after_the_other_and_nothing_of_a_session_stays(db):
    own = {"postgres": "select pg_backend_pid() as me", "mysql": "select connection_id() as me"}[db.kind]
    [first] = await db.rows(own)
    [second] = await db.rows(own)
    await db.query({"postgres": "set search_path to nowhere", "mysql": "set @x = 1"}[db.kind])
    [third] = await db.rows(own)

    assert first == second
    assert first != third


@every_server
async def test_a_connection_that_the_server_closed_meanwhile_is_made_anew(db):
    kill = {"postgres": "select pg_terminate_backend(:me)", "mysql": "kill :me"}[db.kind]
    own = {"postgres": "select pg_backend_pid() as me", "mysql": "select connection_id() as me"}[db.kind]
    [row] = await db.rows(own)
    [one, _] = await asyncio.gather(db.query("select 1 as one"), db.query(kill, row), return_exceptions=True)

    assert one["rows"] == [{"one": 1}]
    assert (await db.query("select 1 as one"))["rows"] == [{"one": 1}]


@every_server
async def test_no_more_than_a_few_connections_are_open(db, facilities):
    await asyncio.gather(*(db.query("select 1") for _ in range(20)))

    [pool] = facilities.opened(Databases)._pools.values()
    assert len(pool._idle) <= 4


@only_postgres
async def test_types_of_postgresql_are_plain_json(db):
    row = (await db.rows("""
        select 1::smallint as small, 9007199254740993::bigint as big, 1.10::numeric as exact, 0.5::float8 as real,
               true as flag, null as nothing, date '2026-03-01' as day, time '12:30' as hour,
               timestamptz '2026-03-01 12:00+02' as at, timestamp '2026-03-01 12:00' as local,
               interval '90 minutes' as length, '\\xff00'::bytea as raw, '{"a": [1]}'::jsonb as doc,
               array[1, null, 3] as list, array['a'] as texts, array['{"a": 1}'::json] as docs,
               'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid as id, inet '10.0.0.1' as net,
               'nan'::float8 as none, 1 as a, 2 as a
    """))[0]  # fmt: skip

    assert row == {
        "small": 1, "big": "9007199254740993", "exact": "1.10", "real": 0.5, "flag": True, "nothing": None,
        "day": "2026-03-01", "hour": "12:30:00", "at": "2026-03-01T10:00:00Z", "local": "2026-03-01T12:00:00",
        "length": 5400, "raw": base64.b64encode(b"\xff\0").decode(), "doc": {"a": [1]}, "list": [1, None, 3],
        "texts": ["a"], "docs": [{"a": 1}], "id": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "net": "10.0.0.1",
        "none": "nan", "a": 1, "a_2": 2,
    }  # fmt: skip


@only_postgres
async def test_what_was_read_can_be_given_as_a_parameter(db):
    text = """
        select $1::bigint as a, $2::numeric as b, $3::date as c, $4::timestamptz as d, $5::timestamp as e,
               $6::interval as f, $7::bytea as g, $8::jsonb as h, $9::int[] as i, $10::uuid as j, $11::text as k,
               $12::time as l, $13::bytea as m
    """
    raw = base64.b64encode(b"\xff\0").decode()
    given = (
        "9007199254740993", "1.10", "2026-03-01", "2026-03-01T10:00:00Z", "2026-03-01T12:00:00", 5400, raw,
        {"a": [1]}, [1, None], "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "x", "12:30:00",
    )  # fmt: skip

    [row] = await db.rows(text, (*given, {"$bytes": raw}))

    assert tuple(row.values()) == (*given, raw)


@only_postgres
@pytest.mark.parametrize(
    ("kind", "value"),
    [("int", "x"), ("int", 1.5), ("int", True), ("date", "2026-13-01"), ("date", 5), ("bytea", "ü"), ("int[]", 3),
     ("numeric", "much"), ("timestamptz", "noon"), ("interval", "long"), ("int", 2**40), ("uuid", "no")],
)  # fmt: skip
async def test_a_parameter_that_does_not_fit_is_named(db, kind, value):
    error = await db.failure(f"select $1::{kind}", (value,))

    assert error.type is ErrorType.PERMANENT
    assert "parameters" in error.message or "$1" in error.message


@only_postgres
async def test_rows_of_any_type_are_inserted(db):
    await db.query("create table odd (at timestamptz, doc jsonb, list int[], raw bytea, exact numeric)")
    row = {"at": "2026-03-01T10:00:00Z", "doc": {"a": 1}, "list": [1, 2], "raw": {"$bytes": "/wA="}, "exact": "1.10"}

    await db.run("sql.insert", {"table": "public.odd", "rows": [row]})

    assert await db.rows("select * from odd") == [{**row, "raw": "/wA="}]


@only_mysql
async def test_types_of_mysql_are_plain_json(db):
    row = (await db.rows("""
        select 1 as small, 9007199254740993 as big, 1.10 as exact, 0.5e0 as real_, null as nothing,
               date '2026-03-01' as day, time '12:30' as hour, timestamp '2026-03-01 12:00:00' as at,
               x'ff00' as raw, 'ü' as text, 1 as a, 2 as a, :list as list, :raw as again, :flag as flag
    """, {"list": [1, "a"], "raw": {"$bytes": "/wA="}, "flag": True}))[0]  # fmt: skip

    assert row == {
        "small": 1, "big": "9007199254740993", "exact": "1.10", "real_": 0.5, "nothing": None, "day": "2026-03-01",
        "hour": 45000, "at": "2026-03-01T12:00:00", "raw": "/wA=", "text": "ü", "a": 1, "a_2": 2, "list": '[1,"a"]',
        "again": "/wA=", "flag": 1,
    }  # fmt: skip


@only_mysql
async def test_a_server_may_not_ask_for_files_of_the_worker(db):
    error = await db.failure("load data local infile '/etc/hostname' into table people")

    assert "no node can carry that out" in error.message


@only_postgres
async def test_rows_that_are_too_large_are_refused(db):
    error = await db.failure("select repeat('x', 1000000) as x from generate_series(1, 200)")

    assert error.type is ErrorType.PERMANENT
    assert "larger than 48 MiB" in error.message


@only_sqlite
async def test_a_file_that_takes_too_long_is_interrupted(db):
    error = await db.failure(TAKES_LONG["sqlite"], timeout=0.3)

    assert error.type is ErrorType.TIMEOUT
    assert (await db.query("select 1 as one"))["rows"] == [{"one": 1}]


@only_sqlite
@pytest.mark.parametrize(
    "text",
    [
        "vacuum into 'stolen.db'",
        "select load_extension('evil')",
        "pragma writable_schema = on",
        "pragma temp_store_directory = '/tmp'",
        "select * from pragma_database_list",
    ],
)
async def test_a_database_reaches_no_other_file_and_loads_no_code(db, text):
    error = await db.failure(text)

    assert error.type is ErrorType.PERMANENT


@only_sqlite
@pytest.mark.parametrize("path", ["../other/shop.db", "/etc/passwd", "nowhere.db", "link.db", "folder/shop.db"])
async def test_only_a_file_in_the_folder_of_the_workspace_is_a_database(db, kept, path, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "shop.db").touch()
    (tmp_path / "w1" / "link.db").symlink_to(tmp_path / "other" / "shop.db")
    (tmp_path / "w1" / "folder").symlink_to(tmp_path / "other")
    kept.credentials["db"] = Credential("db", "sqlite", {"path": path})

    error = await db.failure("select 1")

    assert error.type is ErrorType.PERMANENT


@only_sqlite
async def test_a_file_that_is_no_database_is_a_permanent_failure(db, tmp_path):
    (tmp_path / "w1" / "shop.db").write_bytes(b"this is no database" * 1000)

    error = await db.failure("select * from people")

    assert error.type is ErrorType.PERMANENT


@only_sqlite
async def test_types_of_sqlite_are_plain_json(db):
    [row] = await db.rows(
        "select 1 as i, 9007199254740993 as big, 0.5 as r, 'ü' as t, x'ff00' as b, null as n, :l as l, :raw as raw",
        {"l": [1, "a"], "raw": {"$bytes": "/wA="}},
    )

    assert row == {
        "i": 1, "big": "9007199254740993", "r": 0.5, "t": "ü", "b": "/wA=", "n": None, "l": '[1,"a"]', "raw": "/wA=",
    }  # fmt: skip


class Blobs:
    """Files as a store would keep them."""

    def __init__(self):
        self.content = {}

    async def read(self, file):
        content = self.content[file.hash]
        for at in range(0, len(content), 7):
            yield content[at : at + 7]

    async def write(self, chunks, name, type):  # noqa: A002 -- what a file calls it
        content = b"".join([chunk async for chunk in chunks])
        file = File(hashlib.sha256(content).hexdigest(), len(content), name, type)
        self.content[file.hash] = content
        return file


@every_database
async def test_many_rows_go_through_a_file(db, facilities):
    facilities.files = Blobs()
    await db.insert([{"id": at, "name": f'"quoted",\nline {at}', "paid": None} for at in range(1_200)])

    read = await db.query("select * from people order by id", rowsAs="csv")
    await db.query("delete from people")
    written = await db.run("sql.insert", {"table": "people", "file": read["file"]})
    some = await db.query("select * from people order by id", rowsAs="csv", limit=3)

    assert (read["count"], read["isTruncated"], written["count"]) == (1_200, False, 1_200)
    [last] = await db.rows("select * from people where id = 1199")
    assert last == {"id": 1_199, "name": '"quoted",\nline 1199', "paid": None}
    assert (some["count"], some["isTruncated"]) == (3, True)


@only_sqlite
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"id,id\n1,2", "each column once"),
        (b"id,name\n1", "a line has 1 fields"),
        (b"id\n\xff\xfe", "no text in UTF-8"),
        (b'id,name\n1,"' + b"x\n" * 1_200_000, "never closed"),
        (b'id,name\n1,"a"b', "with.file"),
        (b"id,strange\n1,2", "strange"),
    ],
)
async def test_a_file_that_is_no_table_is_refused_and_nothing_is_written(db, facilities, content, said):
    facilities.files = Blobs()

    async def chunks():
        yield content

    file = as_value(await facilities.files.write(chunks(), "x.csv", "text/csv"))
    with pytest.raises(NodeFailure, match=said) as caught:
        await db.run("sql.insert", {"table": "people", "file": file})

    assert caught.value.error.type is ErrorType.PERMANENT
    assert await db.rows("select count(*) as n from people") == [{"n": 0}]


async def test_a_node_without_a_credential_says_what_to_write(run):
    with pytest.raises(NodeFailure, match="credentials: <name>"):
        await run("sql.query", {"query": "select 1"})


async def test_the_database_is_left_when_the_worker_closes(kept, registry, postgres, postgres_values):
    opened = Facilities(NetworkPolicy(allow=("127.0.0.1",)))
    opened.credentials = kept
    kept.credentials["db"] = Credential("db", "postgres", postgres_values)
    node_type = registry.get("sql.query")
    context = context_of(opened, get_credentials=lambda: "db")
    await node_type.run(node_type.accept({"query": "select 1"}), context)

    await opened.close()

    text = "select count(*) from pg_stat_activity where datname = $1"
    async with asyncio.timeout(10):
        while (await ask(postgres.url(), text, postgres_values["database"])) != [(0,)]:
            pass


@pytest.mark.parametrize(
    "with_",
    [
        {"query": "select * from t where id = {{ input.id }}"},
        {"statements": [{"query": "select 1"}, {"query": "{{ input.sql }}"}]},
        {"statements": "{{ input.statements }}"},
    ],
)
def test_an_expression_in_the_text_is_refused_when_the_workflow_is_saved(with_):
    document = {"ropewalk": 1, "name": "x", "nodes": [{"id": "q", "type": "sql.query", "with": with_}]}

    with pytest.raises(InvalidDefinition, match="give values as parameters"):
        parse_definition(document, Registry.builtin().infos())


@pytest.mark.parametrize(
    ("type_", "with_", "said"),
    [
        ("sql.query", {"query": "select 1; drop table x"}, "has several statements"),
        ("sql.query", {"query": "  -- nothing"}, "is no SQL statement"),
        ("sql.query", {"query": "COMMIT"}, "one transaction already"),
        ("sql.query", {"query": "select $1, :a"}, "use one way alone"),
        ("sql.query", {"query": "select 'a"}, "never closed"),
        ("sql.query", {}, "give query or statements"),
        ("sql.query", {"query": "select 1", "timeout": "2h"}, "at most 1h"),
        ("sql.query", {"query": "select 1; select $1", "parameters": ["{{ input }}"]}, "has several statements"),
        ("sql.query", {"query": "select 1", "limit": 200_000}, "use rowsAs: csv"),
        ("sql.insert", {"table": "t"}, "give rows or file"),
        ("sql.insert", {"table": "t", "rows": [], "onConflict": "update"}, "needs keys"),
        ("sql.insert", {"table": "t", "rows": [], "keys": ["id"]}, "go with onConflict"),
    ],
)
def test_what_no_database_could_do_is_refused_when_the_workflow_is_saved(type_, with_, said):
    document = {"ropewalk": 1, "name": "x", "nodes": [{"id": "q", "type": type_, "with": with_}]}

    with pytest.raises(InvalidDefinition, match=said):
        parse_definition(document, Registry.builtin().infos())


@pytest.mark.parametrize(
    ("text", "holders"),
    [
        ("select ':a', \"b:c\", `d:e` /* :f */ -- :g\n, :h", ("h",)),
        ("select $$ :a $1 $$, $t$ ; :b $t$, :c::text, a[1:2]", ("c",)),
        ("select E'it\\'s :a', :b;  -- done", ("b",)),
        ("select $2, $1, $2", (2, 1, 2)),
        ("select a := 1, b::int", ()),
    ],
)
def test_parameters_are_found_outside_of_texts_names_and_comments(text, holders):
    assert parsed(text).holders == holders


def test_texts_of_mysql_are_read_as_mysql_reads_them():
    text = "select 'it\\'s; :a', :b # ; :c"

    assert check_text(text) == text
    assert parsed(text, is_mysql=True).holders == ("b",)
