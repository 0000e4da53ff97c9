"""Host names without an answer, and who has to wait for them."""

import asyncio
import socket
import threading
from contextvars import copy_context

import pytest

from ropewalk.core.errors import ErrorType
from ropewalk.nodes import lookups, session
from ropewalk.nodes.base import Facilities, NodeFailure
from ropewalk.nodes.lookups import Lookups
from ropewalk.nodes.network import Guard, NetworkPolicy
from tests.nodes.conftest import context_of
from tests.polling import until

PATIENCE = 20
ADDRESS = "8.8.8.8"


class NameServer:
    """A resolver that has no answer for some names until it is told to answer; it keeps what it was asked."""

    def __init__(self):
        self.asked = []
        self.may_answer = threading.Event()

    def __call__(self, host):
        self.asked.append(host)
        if host.startswith("silent"):
            self.may_answer.wait(PATIENCE)
        if host.startswith("unknown"):
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return [ADDRESS]


@pytest.fixture
def server():
    made = NameServer()
    yield made
    made.may_answer.set()


def asked_by(workspace, resolving):
    """A task that asks on behalf of this workspace."""

    def begin():
        lookups.workspace.set(workspace)
        return asyncio.ensure_future(resolving)

    return copy_context().run(begin)


async def test_names_without_an_answer_keep_no_other_workspace_waiting(server):
    names = Lookups(server)
    silent = [asked_by("w1", names.resolve(f"silent{n}.example")) for n in range(100)]
    await until(lambda: len(server.asked) == lookups.PER_WORKSPACE, "the names are asked for")

    async with asyncio.timeout(PATIENCE):
        found = await asked_by("w2", names.resolve("shop.example"))

    assert found == [ADDRESS]
    assert not any(each.done() for each in silent)
    server.may_answer.set()
    assert await asyncio.gather(*silent) == [[ADDRESS]] * 100


async def test_a_name_without_an_answer_is_a_transient_failure_at_its_deadline(server):
    guard = Guard(resolve=Lookups(server, deadline=0.05).resolve)

    with pytest.raises(NodeFailure, match=r"silent\.example cannot be resolved: there was no answer within") as caught:
        await guard.addresses("silent.example", 443)

    assert caught.value.error.type is ErrorType.TRANSIENT


async def test_a_lookup_behind_names_without_an_answer_says_why_it_had_no_turn(server):
    names = Lookups(server, deadline=0.05, per_workspace=1)
    silent = asyncio.ensure_future(names.resolve("silent.example"))
    await until(lambda: server.asked, "the names are asked for")

    with pytest.raises(TimeoutError, match="1 other names this workspace asked for"):
        await names.resolve("shop.example")

    assert server.asked == ["silent.example"]
    with pytest.raises(TimeoutError):
        await silent


async def test_a_caller_that_went_away_keeps_no_other_from_its_turn(server):
    names = Lookups(server, per_workspace=1)
    silent, gone = (asyncio.ensure_future(names.resolve(f"{each}.example")) for each in ("silent", "gone"))
    await until(lambda: server.asked, "the names are asked for")
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    server.may_answer.set()

    assert await names.resolve("shop.example") == [ADDRESS]
    assert await silent == [ADDRESS]
    assert server.asked == ["silent.example", "shop.example"]


async def test_a_name_that_is_asked_for_again_and_again_takes_one_thread(server):
    names = Lookups(server, deadline=0.02)

    for _ in range(3):
        results = await asyncio.gather(*[names.resolve("Silent.example") for _ in range(10)], return_exceptions=True)
        assert all(isinstance(each, TimeoutError) for each in results)

    assert server.asked == ["silent.example"]


async def test_all_workspaces_together_have_so_many_threads_and_take_turns(server):
    names = Lookups(server, per_workspace=4, in_all=2)
    first = [asked_by("w1", names.resolve(f"silent{n}.example")) for n in range(6)]
    await until(lambda: len(server.asked) == 2, "the names are asked for")
    second = asked_by("w2", names.resolve("shop.example"))
    server.may_answer.set()
    await asyncio.gather(*first, second)

    assert server.asked.index("shop.example") <= 3


@pytest.mark.parametrize("host", ["shop.example", "unknown.example"])
async def test_an_answer_is_kept_for_a_moment_and_then_asked_for_again(server, host, monkeypatch):
    names = Lookups(server)
    await asyncio.gather(names.resolve(host), names.resolve(host), return_exceptions=True)
    await asyncio.gather(names.resolve(host), return_exceptions=True)
    kept = list(server.asked)
    monkeypatch.setattr(lookups, "KEPT", 0.0)
    monkeypatch.setattr(lookups, "REFUSAL_KEPT", 0.0)
    again = Lookups(server)
    for _ in range(2):
        await asyncio.gather(again.resolve(host), return_exceptions=True)

    assert kept == [host]
    assert server.asked == [host] * 3


async def test_a_kept_answer_is_vetted_like_a_new_one(server):
    names = Lookups(lambda host: ["10.0.0.5"])
    open_to_all = Guard(NetworkPolicy(allow=("shop.example",)), names.resolve)
    await open_to_all.addresses("shop.example", 443)

    with pytest.raises(NodeFailure, match="not on the public internet"):
        await Guard(resolve=names.resolve).addresses("shop.example", 443)


async def test_the_machine_itself_knows_this_machine():
    assert set(await Lookups().resolve("localhost")) <= {"127.0.0.1", "::1"}


async def test_hosts_without_an_answer_hold_no_connection_that_others_wait_for(server, site, monkeypatch):
    monkeypatch.setattr(session, "MOST_CONNECTIONS", 2)
    site.answer("/", text="hello")
    facilities = Facilities(NetworkPolicy(allow=("127.0.0.1",)), resolve=Lookups(server).resolve)
    silent = [asyncio.ensure_future(facilities.http.get(f"http://silent{n}.example/")) for n in range(3)]
    await until(lambda: len(server.asked) == 3, "the names are asked for")

    async with asyncio.timeout(PATIENCE), facilities.http.get(site.url) as response:
        text = await response.text()

    assert text == "hello"
    for each in silent:
        each.cancel()
    await asyncio.gather(*silent, return_exceptions=True)
    await facilities.close()


async def test_nodes_ask_on_behalf_of_their_workspace(server, site, registry):
    facilities = Facilities(resolve=Lookups(server, deadline=0.05, per_workspace=1).resolve)
    request, mail = registry.get("http.request"), registry.get("email.send")
    silent = request.run(request.accept({"url": "http://silent.example/"}), context_of(facilities, workspace="w1"))
    busy = asyncio.ensure_future(silent)
    await until(lambda: server.asked, "the names are asked for")
    smtp = {"host": "mail.example", "port": 25}
    message = mail.accept({"from": "a@shop.example", "to": "b@shop.example", "subject": "x", "smtp": smtp})

    with pytest.raises(NodeFailure, match="this workspace asked for"):
        await mail.run(message, context_of(facilities, workspace="w1"))

    with pytest.raises(NodeFailure, match=r"silent\.example"):
        await busy
    await facilities.close()
