"""What can be asked of a workspace: its executions, workflows and dead letters, who works there and who may do what."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from ropewalk.client.acl import SharingVerbs
from ropewalk.client.answers import ExecutionSummary, QueueItem, Worker
from ropewalk.client.definitions import DefinitionVerbs, saved
from ropewalk.client.dlq import DeadLetterVerbs
from ropewalk.client.executions import PATH
from ropewalk.client.keys import KeyVerbs
from ropewalk.client.members import MemberVerbs
from ropewalk.client.talking import Request, Series, Talk, ask, get, post, said, whole
from ropewalk.client.verbs import Speaker, listing, verb
from ropewalk.core.canonical import JSON


class WorkspaceVerbs(DefinitionVerbs, DeadLetterVerbs, KeyVerbs, MemberVerbs, SharingVerbs):
    """What both clients can do."""

    @listing
    def executions(self, *, workflow: str | None = None, state: str | None = None, trigger: str | None = None,
                   since: str | None = None, until: str | None = None,
                   limit: int | None = None) -> Series[ExecutionSummary]:  # fmt: skip
        """Executions, the newest first; `workflow` is an id or a name, times are RFC 3339."""
        wanted = {"workflowId": workflow, "state": state, "trigger": trigger, "from": since, "to": until}
        return self._pages(PATH, limit, **wanted)

    @verb
    def start_all(self, starts: Sequence[Mapping[str, JSON]], key: str | None = None) -> Talk[list[str]]:
        """Accept up to a thousand executions, all or none; their ids in order.

        Each has `workflowDefinitionId`, and `input`, `vars`, `priority`, `version` if wanted.
        """
        body = {"starts": [dict(start) for start in starts]}
        answer = yield from self._ask(_once(f"{PATH}/start-batch", body, key))
        return [each["executionId"] for each in answer["started"]]

    @verb
    def queue_item(self, execution: str) -> Talk[QueueItem]:
        """Where an accepted start stands."""
        return self._ask(get(f"/workflow/queue/{quote(execution, safe='')}"))

    @verb
    def publish_event(self, subject: str, payload: JSON = None) -> Talk[int]:
        """Tell every execution that waits for such an event; how many were."""
        answer = yield from self._ask(post("/events", {"subject": subject, "payload": payload}, doubles=True))
        return int(answer["told"])

    @verb
    def me(self) -> Talk[dict[str, Any]]:
        """Who one is to the server, and what one may do."""
        return self._ask(get("/me"))

    @listing
    def workers(self) -> Series[Worker]:
        """Everyone the server knows to execute, those heard of last first."""
        return whole("/workers", self.line.patience)

    @listing
    def breakers(self) -> Series[dict[str, Any]]:
        """The shared health of what nodes call."""
        return self._pages("/breakers")


def started(speaker: Speaker, workflow: str | Mapping[str, JSON], value: JSON, overrides: Mapping[str, JSON] | None, *,
            priority: int | None, version: int | None, key: str | None) -> Talk[str]:  # fmt: skip
    """The id of the execution that was accepted."""
    patience = speaker.line.patience
    if isinstance(workflow, str):
        found = workflow
    else:
        kept = yield from saved(workflow, patience, publish=True)
        found, version = kept["id"], version or kept["version"]
    body = {"workflowDefinitionId": found, "input": value, **said(priority=priority, version=version)}
    if overrides:
        body["vars"] = dict(overrides)
    answer = yield from ask(_once(f"{PATH}/start", body, key), patience)
    return str(answer["executionId"])


def _once(path: str, body: JSON, key: str | None) -> Request:
    """Under one key, however often it is sent."""
    return post(path, body, repeats=True, headers={"Idempotency-Key": key or str(uuid.uuid4())})
