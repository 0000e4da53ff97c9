"""The databases that the nodes of a worker speak to, each with its few connections."""

import asyncio
from functools import partial
from importlib.util import find_spec

from ropewalk.core.canonical import content_hash
from ropewalk.nodes import lookups
from ropewalk.nodes.context import NodeContext
from ropewalk.nodes.credentials import Credential
from ropewalk.nodes.databases.connection import Connection, Pool
from ropewalk.nodes.databases.server import Server, server_of
from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.file import folder_of
from ropewalk.nodes.folder import Folder, on_a_thread
from ropewalk.nodes.network import Address, Guard

MOST_POOLS = 256


class Databases:
    """Pools by workspace and credential; a credential that was changed has another pool."""

    def __init__(self) -> None:
        self._pools: dict[tuple[str, str, str], Pool] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def pool(self, context: NodeContext, credential: Credential) -> Pool:
        """The connections of this credential."""
        if credential.type == "sqlite":
            folder_of(context, f"the database {credential.values['path']!r}")  # refused where the execution has none
        content = content_hash([credential.type, dict(credential.values), list(credential.hosts)])
        key = (context.workspace, credential.name, content)
        if key not in self._pools:
            self._pools[key] = _pool(context, credential)
            while len(self._pools) > MOST_POOLS:
                self._give_up(next(iter(self._pools)))
        return self._pools[key]

    def _give_up(self, key: tuple[str, str, str]) -> None:
        task = asyncio.get_running_loop().create_task(self._pools.pop(key).close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        pools, self._pools = self._pools, {}
        await asyncio.gather(*(pool.close() for pool in pools.values()), *self._closing)


def _pool(context: NodeContext, credential: Credential) -> Pool:
    if credential.type != "sqlite":
        return Pool(_Opening(context, credential).connect)
    # Opened anew for each node: the file may have been replaced by another one meanwhile.
    path = str(credential.values["path"])
    return Pool(partial(_open_file, folder_of(context, f"the database {path!r}"), path), keeps=False)


async def _open_file(folder: Folder, path: str) -> Connection:
    from ropewalk.nodes.databases import sqlite  # here: a worker without such nodes does without the driver

    try:
        real = await on_a_thread(folder.real_path, path)
    except FileNotFoundError as error:
        raise NodeFailure.permanent(f"there is no file {path!r} in the workspace's folder") from error
    return await sqlite.connect(real, path)


class _Opening:
    """How the connections of one credential are opened; each one is vetted anew."""

    def __init__(self, context: NodeContext, credential: Credential) -> None:
        self._guard: Guard = context.facilities.guard
        self._workspace = context.workspace
        self._type = credential.type
        self._server: Server = server_of(credential)

    async def connect(self) -> Connection:
        if self._type == "postgres":
            from ropewalk.nodes.databases import postgres  # here: a worker without such nodes does without the driver

            return await postgres.connect(self._server, self._find)
        if find_spec("aiomysql") is None:
            raise NodeFailure.permanent("MySQL needs a driver: pip install 'ropewalk[mysql]'")
        from ropewalk.nodes.databases import mysql

        return await mysql.connect(self._server, self._find)

    async def _find(self, host: str, port: int) -> list[Address]:
        lookups.workspace.set(self._workspace)
        return await self._guard.addresses(host, port)
