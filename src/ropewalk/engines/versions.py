"""The versions of workflows, each read and compiled once; and which of them a start takes."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from ropewalk.core.acceptance import Version
from ropewalk.core.errors import InvalidTransition, NotFound, UnknownVersion, VersionLost
from ropewalk.core.events import RULES, ExecutionAccepted
from ropewalk.core.plan import Plan, load_plan
from ropewalk.engines.computing import Computing
from ropewalk.engines.process import in_short_pauses
from ropewalk.store import workflows
from ropewalk.store.access import Reader
from ropewalk.store.workflows import Workflow

MOST: Final = 1_000
LARGE_DOCUMENT: Final = 64 * 1024
"""One with more bytes is compiled beside the loop, and whole."""
AT_ONCE: Final = 20
"""How many are read together: each may be some megabytes."""

_log = logging.getLogger("ropewalk.engine")


class Versions:
    """Those that were used lately are at hand."""

    def __init__(self, reader: Reader, computing: Computing) -> None:
        self._reader = reader
        self._computing = computing
        self._kept: OrderedDict[tuple[str, int], Version] = OrderedDict()

    async def version(self, workflow: str, version: int) -> Version:
        """A version of a workflow; NotFound if there is none of this number."""
        key = (workflow, version)
        if key not in self._kept:
            found = await workflows.get_version(self._reader, workflow, version)
            if found is None:
                raise NotFound(f"there is no version {version} of workflow {workflow}")
            await self._keep_stored(found)
        self._kept.move_to_end(key)
        return self._kept[key]

    def version_at_hand(self, workflow: str, version: int) -> Version | None:
        """The same if nothing need be read for it."""
        return self._kept.get((workflow, version))

    async def followed(self, accepted: ExecutionAccepted) -> Version:
        """The version an execution follows, which was there when it was accepted.

        UnknownVersion if a newer Ropewalk has accepted it: this one would decide by other rules.
        """
        if accepted.rules > RULES:
            raise UnknownVersion(f"it follows rules {accepted.rules}; this Ropewalk knows those up to {RULES}")
        try:
            return await self.version(accepted.workflow, accepted.version)
        except NotFound as error:
            raise VersionLost(f"version {accepted.version} of workflow {accepted.workflow} is missing") from error

    async def startable(self, workflow: Workflow, version: int | None) -> Version:
        """The version that a start of this workflow takes: the one asked for, else the one published."""
        require_startable(workflow)
        wanted = workflow.published if version is None else version
        if wanted is None:
            raise InvalidTransition(f"workflow {workflow.name!r} has no published version: publish one, or name one")
        return await self.version(workflow.id, wanted)

    async def of_name(self, workspace: str, name: str, version: int | None) -> Version:
        """The same for a workflow of this id or name."""
        found = await workflows.find(self._reader, workspace, name)
        if found is None:
            raise NotFound(f"there is no workflow {name!r}")
        return await self.startable(found, version)

    async def load(self, wanted: Mapping[tuple[str, int], str], heard: Callable[[], None]) -> None:
        """Have versions at hand, each known by an execution of it; `heard` is called whenever there was an answer.

        What cannot be read is told to who needs it.
        """
        missing = [execution for version, execution in wanted.items() if version not in self._kept]
        for some in range(0, len(missing), AT_ONCE):
            for found in await workflows.versions_of(self._reader, missing[some : some + AT_ONCE]):
                try:
                    await self._keep_stored(found)
                except Exception as error:  # noqa: BLE001 -- the executions of this version are left out, and no others
                    _log.debug("version %d of %s cannot be read: %s", found.version, found.workflow, error)
            heard()

    async def _keep_stored(self, found: workflows.Version) -> None:
        document = found.document.encode()
        if len(document) <= LARGE_DOCUMENT:
            plan = load_plan(document)
        else:
            plan = await self._computing.of_caller(
                found.workflow, "", partial(in_short_pauses, partial(_compiled, document))
            )
        self.keep(Version(found.workflow, found.version, found.hash, plan, found.bounded_by))

    def keep(self, version: Version) -> None:
        """A version that was just saved is at hand from now on."""
        self._kept[version.workflow, version.version] = version
        while len(self._kept) > MOST:
            self._kept.popitem(last=False)

    def forget(self) -> None:
        """All are read again: of a database that went back, the same number may be another version."""
        self._kept.clear()


def require_startable(workflow: Workflow) -> None:
    """Refuses a new execution of an archived workflow, also by a rerun or a replay."""
    if workflow.archived_at is not None:
        raise InvalidTransition(f"workflow {workflow.name!r} is archived: save it again to start it")


def _compiled(document: bytes) -> Plan:
    """The plan with every expression compiled, so that no node has to wait for that on the loop."""
    plan = load_plan(document)
    for node in range(len(plan)):
        plan.with_template(node)
    return plan
