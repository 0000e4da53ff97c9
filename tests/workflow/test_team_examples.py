"""The workflows that a team would run, executed against servers on this machine."""

import asyncio
import csv
import io
import json
import sqlite3
from email import message_from_bytes
from email.policy import default
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiosmtpd.smtp import SMTP

from ropewalk.documents import read_document
from ropewalk.local import LocalEngine
from ropewalk.nodes.base import Registry
from ropewalk.wiring import Settings, open_service
from tests.nodes.conftest import serve
from tests.s3 import KEY, make_bucket, s3_server

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name):
    return read_document(EXAMPLES / f"{name}.yaml").value


@pytest.fixture
def folder(tmp_path):
    """The folder of the workspace."""
    made = tmp_path / "files" / "default"
    made.mkdir(parents=True)
    return made


@pytest.fixture
async def local(tmp_path, folder):
    settings = Settings(
        db=str(tmp_path / "test.db"), is_thrown_away=True, allow_hosts=("127.0.0.1",), files_root=str(folder.parent)
    )
    async with open_service(settings, Registry.builtin()) as service:
        assert service.workspace == folder.name
        yield LocalEngine(service)


@pytest.fixture
async def warehouse(local, folder):
    """The database of the team, and its credential."""
    with sqlite3.connect(folder / "warehouse.db") as database:
        database.execute("create table invoice_lines (invoice integer, item text, amount numeric)")
        database.execute("insert into invoice_lines values (7, 'ink', 3), (7, 'pen', 12.5), (8, 'desk', 100)")
    database.close()
    await local.service.credentials.create("warehouse", "sqlite", {"path": "warehouse.db"}, [], "local")
    return folder / "warehouse.db"


@pytest.fixture
async def site():
    async for opened in serve():
        yield opened


def answers(site, path, *told, status=200):
    """Answers a path with these JSON values one after the other, the last again and again."""
    left = list(told)

    async def answer(request):
        return web.json_response(left.pop(0) if len(left) > 1 else left[0], status=status)

    site.answers[path] = answer


async def waiting(execution):
    async for each in execution.events():
        if each["type"] == "RunWaiting":
            return
    raise AssertionError("it asked no person")


def shop(site, total, refund=200):
    answers(site, "/orders/o-17", {"sku": "pen", "total": total})
    answers(site, "/stock", {"id": "s-1"})
    answers(site, "/stock/s-1", {})
    answers(site, "/refunds", {"id": "r-1"}, status=refund)
    answers(site, "/notes", {})
    return {"shop": site.url}


def told(site, method, path):
    """What was sent there, in order."""
    return [json.loads(body or "null") for verb, place, _, body in site.requests if (verb, place) == (method, path)]


async def test_a_large_refund_is_paid_when_a_person_approves(local, site):
    execution = await local.start(example("order-refund"), {"orderId": "o-17"}, vars=shop(site, 250))
    await waiting(execution)
    await execution.approve("ask")

    assert await execution.result() == {"refund": "r-1"}
    assert told(site, "POST", "/refunds") == [{"order": "o-17", "amount": 250}]
    assert told(site, "POST", "/notes") == [{"order": "o-17", "outcome": "SUCCESS"}]
    assert ("DELETE", "/stock/s-1") not in site.asked


async def test_a_refund_that_is_declined_is_undone_and_told(local, site):
    execution = await local.start(example("order-refund"), {"orderId": "o-17"}, vars=shop(site, 250))
    await waiting(execution)
    await execution.reject("ask")

    assert (await execution.wait())["state"] == "FAILED"
    assert told(site, "POST", "/refunds") == []
    assert site.asked[-2:] == [("DELETE", "/stock/s-1"), ("POST", "/notes")]
    assert told(site, "POST", "/notes") == [{"order": "o-17", "outcome": "FAILED"}]


async def test_a_small_refund_that_the_bank_refuses_is_undone(local, site):
    execution = await local.start(example("order-refund"), {"orderId": "o-17"}, vars=shop(site, 20, refund=422))

    assert (await execution.wait())["state"] == "FAILED"
    assert site.asked[-2:] == [("DELETE", "/stock/s-1"), ("POST", "/notes")]


async def test_good_rows_are_loaded_and_a_bad_one_is_a_dead_letter(local, folder, warehouse):
    (folder / "in").mkdir()
    (folder / "in" / "orders.csv").write_text("id,customer,total\n1,Ada,12.5\n2,Bob,much\n3,Cy,7\n")
    document = example("nightly-load")

    first = await (await local.start(document, {"path": "in/orders.csv"})).result()
    again = await (await local.start(document, {"path": "in/orders.csv"})).result()

    with sqlite3.connect(warehouse) as database:
        rows = database.execute("select id, customer, total from orders order by id").fetchall()
    database.close()
    assert first == again == {"loaded": 2, "refused": [1]}
    assert rows == [(1, "Ada", 12.5), (3, "Cy", 7)]
    assert [letter["node"] async for letter in local.dead_letters()] == ["row", "row"]


async def test_all_pages_of_an_api_become_one_file_in_a_bucket(local, site):
    pages = [
        [{"id": 1, "name": "Ada", "address": {"city": "London"}}, {"id": 2, "name": "Bob"}],
        [{"id": 3, "name": "Cy"}],
    ]
    answers(site, "/contacts", {"data": pages[0], "next": "c2"}, {"data": pages[1], "next": None})
    with s3_server() as url:
        await make_bucket(url, "exports")
        await local.service.credentials.create("bucket", "aws", {**KEY, "endpoint": url}, [], "local")

        made = await (await local.start(example("api-to-s3"), vars={"api": site.url})).result()

        async with aiohttp.ClientSession() as session, session.get(made["link"]) as answer:
            rows = list(csv.reader(io.StringIO(await answer.text())))
    assert made["contacts"] == 3
    assert rows == [["id", "name", "address.city"], ["1", "Ada", "London"], ["2", "Bob", ""], ["3", "Cy", ""]]


async def test_each_file_is_summed_up_and_put_away_and_a_bad_one_stays(local, folder):
    (folder / "in").mkdir()
    (folder / "in" / "may.csv").write_text("country,total\nDE,20\nFR,9.5\nDE,130\n")
    (folder / "in" / "june.csv").write_text("country,total\nDE,1\n")
    (folder / "in" / "bad.csv").write_text("country,total\nDE,much\n")
    await local.service.save(example("file-pipeline-one"))

    made = await (await local.start(example("file-pipeline"))).result()

    assert (sorted(made["done"]), made["failed"]) == (["out/june.csv", "out/may.csv"], 1)
    assert (folder / "out" / "may.csv").read_text() == "country,total,orders\nDE,150,2\nFR,9.5,1\n"
    assert [path.name for path in (folder / "in").iterdir()] == ["bad.csv"]
    assert sorted(path.name for path in (folder / "done").iterdir()) == ["june.csv", "may.csv"]


class Mailbox:
    """Keeps what comes."""

    def __init__(self):
        self.envelopes = []

    async def handle_DATA(self, server, session, envelope):  # noqa: N802 -- aiosmtpd's name
        self.envelopes.append(envelope)
        return "250 OK"


async def test_an_invoice_comes_by_mail_with_its_table(local, warehouse):
    mailbox = Mailbox()
    server = await asyncio.get_running_loop().create_server(lambda: SMTP(mailbox, hostname="test"), "127.0.0.1", 0)
    values = {"host": "127.0.0.1", "port": server.sockets[0].getsockname()[1], "tls": "none"}
    await local.service.credentials.create("mail", "smtp", values, [], "local")

    made = await (await local.start(example("invoice-mail"), {"invoice": 7, "to": "ada@example.org"})).result()
    server.close()
    await server.wait_closed()

    message = message_from_bytes(mailbox.envelopes[0].content, policy=default)
    [attached] = message.iter_attachments()
    assert made == {"sent": ["ada@example.org"], "lines": 2}
    assert (attached.get_filename(), attached.get_content().splitlines()) == (
        "invoice-7.csv", ["item,amount", "ink,3", "pen,12.5"],
    )  # fmt: skip
    assert "<strong>12.5</strong>" in message.get_body(("html",)).get_content()


async def test_each_change_is_posted_once_from_where_the_last_run_ended(local, site):
    answers(
        site, "/changes",
        {"changes": [{"id": "a"}, {"id": "b"}], "cursor": 2},
        {"changes": [{"id": "b"}, {"id": "c"}], "cursor": 3},
        {"changes": [], "cursor": 3},
    )  # fmt: skip
    for name in ("a", "b", "c"):
        answers(site, f"/items/{name}", {})
    given = {"partner": site.url, "shop": site.url}

    runs = [await (await local.start(example("sync-changes"), vars=given)).result() for _ in range(3)]

    assert runs == [{"posted": 2, "cursor": 2}, {"posted": 1, "cursor": 3}, {"posted": 0, "cursor": None}]
    assert sorted(path for verb, path in site.asked if verb == "PUT") == ["/items/a", "/items/b", "/items/c"]
    assert site.query == "since=3"


@pytest.mark.parametrize(
    ("status", "state", "result"),
    [
        (200, "SUCCESS", "paid"),
        (402, "SUCCESS", "declined"),
        (409, "SUCCESS", "twice"),
        (503, "SUCCESS", "later"),
        (401, "FAILED", None),
    ],
)
async def test_each_kind_of_refusal_has_an_answer_of_its_own(local, site, status, state, result):
    answers(site, "/payments", {"why": "no"}, status=status)

    execution = await local.start(
        example("payment-errors"), {"orderId": "o-17", "amount": 500}, vars={"bank": site.url}
    )

    ended = await execution.wait()
    assert ended["state"] == state
    assert result is None or await execution.result() == result


async def test_a_batch_goes_on_without_the_order_that_failed(local):
    await local.service.save(example("batch-order"))

    assert await (await local.start(example("batch"))).result() == {"total": 37, "failed": [3]}


@pytest.mark.parametrize(("finance", "result"), [("approve", "paid"), ("reject", "declined")])
async def test_two_people_must_agree_to_a_large_expense(local, finance, result):
    execution = await local.start(example("four-eyes"), {"by": "Ada", "amount": 900})
    asked = 0
    async for each in execution.events():
        asked += each["type"] == "RunWaiting"
        if asked == 2:
            break
    await getattr(execution, finance)("finance")
    await execution.approve("manager")

    assert await execution.result() == result


async def test_a_small_expense_asks_no_person(local):
    assert await (await local.start(example("four-eyes"), {"by": "Ada", "amount": 9})).result() == "paid"


async def test_a_price_is_told_when_it_has_changed_and_only_then(local, site):
    prices = iter(["12.95", "12.95", "9.95"])

    async def page(request):
        return web.Response(text=f"<p>Pen: <b class=price>{next(prices)}</b></p>", content_type="text/html")

    site.answers["/pen"] = page
    answers(site, "/chat.postMessage", {"ok": True, "ts": "1", "channel": "C1"})
    await local.service.credentials.create("chat", "slack", {"token": "xoxb-1", "baseUrl": site.url}, [], "local")
    given = {"page": f"{site.url}/pen"}

    runs = [await (await local.start(example("price-watch"), vars=given)).result() for _ in range(3)]

    assert [(run["price"], run["told"]) for run in runs] == [("12.95", True), ("12.95", False), ("9.95", True)]
    assert told(site, "POST", "/chat.postMessage")[-1]["text"].endswith("12.95 → 9.95")


def partner(site, *states):
    answers(site, "/exports", {"id": "x-1"})
    answers(site, "/exports/x-1", *({"state": state, "path": "/files/x-1"} for state in states))
    site.answer("/files/x-1", text="id\n1\n", content_type="text/csv")
    return {"partner": site.url}


async def test_an_export_is_looked_at_until_it_is_ready(local, site, folder):
    given = partner(site, "running", "running", "ready")

    made = await (await local.start(example("wait-until-ready"), vars=given)).result()

    assert made == {"rounds": 3, "size": 5}
    assert (folder / "exports" / "latest.csv").read_text() == "id\n1\n"


async def test_an_export_that_is_never_ready_fails_with_a_word_of_its_own(local, site):
    execution = await local.start(example("wait-until-ready"), vars=partner(site, "running"))

    ended = await execution.wait()

    assert ended["state"] == "FAILED"
    assert "x-1 is not ready in time" in ended["error"]
    assert site.asked.count(("GET", "/exports/x-1")) == 5
