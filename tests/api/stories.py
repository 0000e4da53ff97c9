"""A house whose nodes do what a test tells them, and words to tell of executions over HTTP."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import httpx2

from ropewalk.access import keys
from ropewalk.access.rights import Role
from ropewalk.api.app import create_app
from ropewalk.api.backend import Backend
from ropewalk.core.events import Event
from ropewalk.engines.settings import WorkerSettings
from ropewalk.store import acl
from ropewalk.wiring import Settings, open_service
from tests.api.house import KEY, House
from tests.engines.outside import Outside, WatchedTypes
from tests.engines.worlds import ONCE, act, flow, node

Json = dict[str, Any]

UNKNOWN_ID = "00000000-0000-7000-8000-000000000000"
ASK = flow(node("ask", "approval", title="Really?"), name="asked")
BROKEN = flow(act("a", 7, fails=99, retry=ONCE), name="broken")
GATED = flow(node("a", "gate"), act("b"), edges="a->b", name="gated")
EXECUTIONS = "/workflow/executions"
START = f"{EXECUTIONS}/start"
BATCH = f"{EXECUTIONS}/start-batch"
ONE = {"ropewalk": 1, "name": "one", "nodes": [{"id": "a", "type": "noop"}]}
LETTERS = "/workflow/dead-letters"


class Town(House):
    """A house with the world outside of it in the test's hands."""

    outside: Outside

    async def start(self, document: Json, given: Any = None, workspace: str = "default") -> str:
        """An accepted execution of this document; its id."""
        service = self.backend.service(workspace)
        return await service.start(await service.save(document), given)

    async def run(self, document: Json, given: Any = None, workspace: str = "default") -> str:
        """The same, when it is over."""
        execution = await self.start(document, given, workspace)
        await self.service.ended(execution)
        return execution

    async def until(self, execution: str, kind: type[Event]) -> Event:
        """Waits for an event of this kind."""
        async with aclosing(self.service.engine.watching.follow(execution)) as following:
            async for _, event in following:
                if isinstance(event, kind):
                    return event
        raise AssertionError(f"the execution ended without {kind.__name__}")

    async def get(self, path: str, token: str | None = None, **more: Any) -> Any:
        """What a question that has an answer is answered."""
        answer = await self.ask("GET", path, token, **more)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def tell(self, path: str, body: Any = None, token: str | None = None, **more: Any) -> httpx2.Response:
        """One POST."""
        return await self.ask("POST", path, token, **({} if body is None else {"json": body}), **more)

    async def letter(self, execution: str) -> Json:
        """The one dead letter of an execution that waits for a person."""
        found = (await self.get(f"{LETTERS}?resolution=PENDING&limit=200"))["items"]
        (letter,) = [each for each in found if each["executionId"] == execution]
        return dict(letter)

    async def shared_with(self, workflow: str, role: Role, workspace: str = "default") -> str:
        """A token of a member of another workspace with whom one workflow is shared."""
        await self.workspace("elsewhere")
        token = await self.key(Role.ADMIN, "elsewhere")
        store = self.backend.store
        async with store.transaction() as tx:
            subject = f"key:{token.split('_')[1]}"
            await acl.put(tx, acl.Share(workspace, workflow, subject, role, store.now(), "test"))
        return token


@asynccontextmanager
async def town_on(db: str, **settings: Any) -> AsyncIterator[Town]:
    """A town on this store."""
    outside = Outside()
    native = WorkerSettings(drain_seconds=0.2)
    async with open_service(Settings(db=db, worker=native, **settings), WatchedTypes.of(outside)) as service:
        backend = await Backend.open(service.store, service.of, key=KEY)
        async with service.store.transaction() as tx:
            wanted = keys.Wanted(workspace="default", name="root", role=Role.ADMIN, is_root=True)
            _, root = await keys.make(tx, wanted, "test", service.store.now())
        town = Town(create_app(backend, "test"), backend, service, root)
        town.outside = outside
        yield town
        for gate in outside.gates.values():
            gate.open()


def fields(answer: httpx2.Response) -> list[str]:
    """What is to be mended."""
    return [each["field"] for each in answer.json()["problems"]]
