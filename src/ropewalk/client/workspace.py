"""What can be asked of a workspace: its executions, workflows and dead letters, who works there and who may do what."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol
from urllib.parse import quote

from ropewalk.client.acl import SharingVerbs
from ropewalk.client.answers import ExecutionSummary, QueueItem, Worker
from ropewalk.client.credentials import CredentialVerbs
from ropewalk.client.definition_answers import Saved
from ropewalk.client.definitions import DefinitionVerbs, saved
from ropewalk.client.dlq import DeadLetterVerbs
from ropewalk.client.executions import PATH
from ropewalk.client.files import FileVerbs
from ropewalk.client.keys import KeyVerbs
from ropewalk.client.many import ManyVerbs, filters
from ropewalk.client.members import MemberVerbs
from ropewalk.client.talking import Request, Series, Talk, ask, get, post, said, whole
from ropewalk.client.triggers import TriggerVerbs
from ropewalk.client.verbs import Speaker, listing, verb
from ropewalk.core.canonical import JSON, content_hash
from ropewalk.core.errors import InvalidDefinition, InvalidTransition, NotFound, Problem

MOST_SAVED: Final = 1_000
"""How many documents are remembered as saved."""
_ELSEWHERE: Final = (
    "it is a function of this program, which is not sent: give its file to the server and the workers (--nodes), or "
    "execute the workflow in this program (ropewalk.open)"
)


class WorkspaceVerbs(ManyVerbs, DefinitionVerbs, DeadLetterVerbs, FileVerbs, CredentialVerbs, KeyVerbs, MemberVerbs,
                     SharingVerbs, TriggerVerbs):  # fmt: skip
    """What both clients can do."""

    @listing
    def executions(self, *, workflow: str | None = None, state: str | None = None, trigger: str | None = None,
                   since: str | None = None, until: str | None = None, id_part: str | None = None,
                   limit: int | None = None, search: str | None = None, waiting: bool = False,
                   before: str | None = None) -> Series[ExecutionSummary]:  # fmt: skip
        """Executions, the newest first; `workflow` is an id or a name, times are RFC 3339, ids begin or end so.

        `search` is a text in the id, the workflow's name or, for readers of payloads, the error; `waiting` are those
        of which a node waits; `before` is the id of the one they are older than.
        """
        wanted = filters(workflow, state, trigger, since, until, search)
        return self._pages(PATH, limit, **wanted, idPart=id_part, waiting=waiting or None, before=before)

    @verb
    def start_all(self, starts: Sequence[str | Mapping[str, JSON]], key: str | None = None) -> Talk[list[str]]:
        """Accept up to a thousand executions, all or none; their ids in order.

        Each is the id or name of a workflow, or has it as `workflowDefinitionId`, and `input`, `vars`, `priority`,
        `version` if wanted.
        """
        body = {"starts": [_told(start) for start in starts]}
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
        """Who the caller is to the server, and what they may do."""
        return self._ask(get("/me"))

    @listing
    def workers(self) -> Series[Worker]:
        """Every worker the server knows, those heard of last first."""
        return whole("/workers", self.line.patience)

    @listing
    def breakers(self) -> Series[dict[str, Any]]:
        """The shared health of what nodes call."""
        return self._pages("/breakers")

    @verb
    def reset_breaker(self, target: str) -> Talk[bool]:
        """Close a breaker by hand, and let the attempts that it holds go on; False if it was closed."""
        answer = yield from self._ask(post("/breakers/reset", {"target": target}, repeats=True))
        return bool(answer["changed"])


class Built(Protocol):
    """A workflow that is written in Python."""

    @property
    def node_types(self) -> Sequence[Any]: ...
    def document(self) -> dict[str, JSON]: ...


def _told(start: str | Mapping[str, JSON]) -> dict[str, JSON]:
    return {"workflowDefinitionId": start} if isinstance(start, str) else dict(start)


def started(speaker: Speaker, workflow: str | Mapping[str, JSON] | Built, value: JSON,
            overrides: Mapping[str, JSON] | None, *, priority: int | None, version: int | None,
            key: str | None) -> Talk[str]:  # fmt: skip
    """The id of the execution that was accepted."""
    body = {"input": value, **said(priority=priority, version=version)}
    if overrides:
        body["vars"] = dict(overrides)
    if not isinstance(workflow, str):
        return (yield from _started_document(speaker, workflow, body, key))
    return (yield from _accepted(speaker, {**body, "workflowDefinitionId": workflow}, key))


def _accepted(speaker: Speaker, body: JSON, key: str | None) -> Talk[str]:
    answer = yield from ask(_once(f"{PATH}/start", body, key), speaker.line.patience)
    return str(answer["executionId"])


def _started_document(
    speaker: Speaker, workflow: Mapping[str, JSON] | Built, body: dict[str, JSON], key: str | None
) -> Talk[str]:
    """The same for a document, which is saved and published once; again if the server has archived or lost it."""
    document = workflow if isinstance(workflow, Mapping) else workflow.document()
    known: dict[str, Saved] = speaker.line.saved
    name = content_hash(dict(document))
    if name in known:
        try:
            return (yield from _accepted(speaker, _of(known[name], body), key))
        except (InvalidTransition, NotFound):
            del known[name]
    try:
        kept = yield from saved(document, speaker.line.patience, publish=True)
    except InvalidDefinition as error:
        raise _about_functions(error, document, workflow) from error
    if len(known) >= MOST_SAVED:
        known.clear()
    known[name] = kept
    return (yield from _accepted(speaker, _of(kept, body), key))


def _of(kept: Saved, body: dict[str, JSON]) -> dict[str, JSON]:
    return {"version": kept["version"], **body, "workflowDefinitionId": kept["id"]}


def _about_functions(
    error: InvalidDefinition, document: Mapping[str, JSON], workflow: Mapping[str, JSON] | Built
) -> InvalidDefinition:
    """The same refusal; of a type that is a function of this program it says what to do."""
    functions = () if isinstance(workflow, Mapping) else tuple(each.name for each in workflow.node_types)
    nodes: Any = document.get("nodes") or ()

    def told(problem: Problem) -> Problem:
        match problem.path:
            case ("nodes", int(index), "type") if nodes[index]["type"] in functions:
                return Problem(problem.path, f"{problem.message}; {_ELSEWHERE}")
        return problem

    return InvalidDefinition([told(each) for each in error.problems])


def _once(path: str, body: JSON, key: str | None) -> Request:
    """Under one key, however often it is sent."""
    return post(path, body, repeats=True, headers={"Idempotency-Key": key or str(uuid.uuid4())})
