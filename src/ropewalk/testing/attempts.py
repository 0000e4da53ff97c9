"""One attempt of one node type, without an engine: for tests of a type against a server of the test's own."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from ropewalk.core.duration import SECOND
from ropewalk.nodes.base import Facilities, NodeContext, NodeType, Output
from ropewalk.nodes.credentials import Credential, Token
from ropewalk.nodes.network import NetworkPolicy

NAME = "test"


def attempt(
    node_type: NodeType,
    inputs: Mapping[str, Any] | None = None,
    *,
    credential: Mapping[str, Any] | None = None,
    allow_hosts: Sequence[str] = ("127.0.0.1", "::1"),
) -> Any:
    """What the type gives for these inputs; `NodeFailure` if it fails. It may call servers of this machine.

    `credential` has the `type` of one and its fields.
    """
    return asyncio.run(_attempt(node_type, inputs, credential, tuple(allow_hosts)))


async def _attempt(
    node_type: NodeType, inputs: Mapping[str, Any] | None, credential: Mapping[str, Any] | None, allow: tuple[str, ...]
) -> Any:
    facilities = Facilities(NetworkPolicy(allow=allow))
    if credential is not None:
        facilities.credentials = _Only(credential)
    context = NodeContext(
        execution=NAME, workspace=NAME, node=NAME, make_key=lambda: NAME, now=time.time_ns() * SECOND // 10**9,
        facilities=facilities, get_credentials=lambda: None if credential is None else NAME,
    )  # fmt: skip
    try:
        result = await node_type.run(node_type.accept(inputs), context)
    finally:
        await facilities.close()
    return result.value if isinstance(result, Output) else result


class _Only:
    """The one credential there is."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        values = {name: value for name, value in fields.items() if name != "type"}
        self._credential = Credential(NAME, fields["type"], values)

    async def get(self, workspace: str, name: str) -> Credential:
        return self._credential

    async def require(self, workspace: str, name: str, actors: Sequence[str]) -> None:
        """It may be used by all."""

    async def token(
        self, workspace: str, credential: Credential, renew: Callable[[], Awaitable[Token]], refused: str = ""
    ) -> str:
        return (await renew()).value
