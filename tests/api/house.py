"""A server's app on a store of its own, and clients with keys of every kind."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from fastapi import FastAPI

from ropewalk.access import keys
from ropewalk.access.rights import Role
from ropewalk.access.secret_key import SecretKey
from ropewalk.access.settings import AccessSettings
from ropewalk.api.app import create_app
from ropewalk.api.backend import Backend
from ropewalk.service import Service
from ropewalk.store import workspaces
from ropewalk.wiring import Settings, open_service

API = "/api/v1"

KEY = SecretKey("the same for every server of a test")


class House:
    """An app, the backend behind it, and its doors."""

    def __init__(self, app: FastAPI, backend: Backend, service: Service, root: str) -> None:
        self.app = app
        self.backend = backend
        self.service = service
        self.root = root

    def client(self, token: str | None) -> httpx2.AsyncClient:
        """A client that sends this token; None sends none."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        transport = httpx2.ASGITransport(app=self.app, raise_app_exceptions=False)
        return httpx2.AsyncClient(transport=transport, base_url="http://ropewalk.test", headers=headers)

    async def ask(self, method: str, path: str, token: str | None = None, **more: Any) -> httpx2.Response:
        """One request under /api/v1, as root unless a token is given."""
        async with self.client(token or self.root) as client:
            return await client.request(method, f"{API}{path}", **more)

    async def key(self, role: Role, workspace: str = "default", **more: Any) -> str:
        """A token of this role."""
        wanted = keys.Wanted(workspace=workspace, name="test", role=role, **more)
        async with self.backend.store.transaction() as tx:
            return (await keys.make(tx, wanted, "test", self.backend.store.now()))[1]

    async def workspace(self, name: str) -> None:
        async with self.backend.store.transaction() as tx:
            await workspaces.ensure(tx, name, workspaces.Plan.ENTERPRISE, self.backend.store.now())

    async def save(self, document: Mapping[str, Any], workspace: str = "default") -> str:
        """A published workflow; its id."""
        return (await self.backend.service(workspace).save(dict(document))).workflow


@asynccontextmanager
async def opened(db: str, access: AccessSettings | None = None) -> AsyncIterator[House]:
    """A house on this store."""
    async with open_service(Settings(db=db)) as service:
        backend = await Backend.open(service.store, service.of, access, key=KEY)
        async with service.store.transaction() as tx:
            wanted = keys.Wanted(workspace="default", name="root", role=Role.ADMIN, is_root=True)
            _, root = await keys.make(tx, wanted, "test", service.store.now())
        yield House(create_app(backend, "test"), backend, service, root)
