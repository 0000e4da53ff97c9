"""A request for every operation: good enough to be let through, so that a refused one was refused by authorization.

A route without a sample here fails the test of permissions. `about` says what it is about, which decides what a caller
may do with whom only one workflow is shared: WORKFLOW, something that belongs to a workflow; WORKSPACE, the whole of
one; PART, what every caller may have who has a part in the workspace (lists are narrowed to what is shared).
"""

import hashlib
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any

from msgspec import Struct

ONE = {"ropewalk": 1, "name": "one", "nodes": [{"id": "a", "type": "noop"}]}
A_SUBJECT = "user:sample"
A_CREDENTIAL = "sample-credential"
CONTENT = b"sample"
A_HASH = hashlib.sha256(CONTENT).hexdigest()
A_FILE = {"$file": {"hash": A_HASH, "size": len(CONTENT), "name": "sample.txt", "type": "text/plain"}}
TARGET = "http.request sample.test"


class About(Enum):
    """What an operation is about."""

    WORKFLOW = auto()
    WORKSPACE = auto()
    PART = auto()


class World(Struct, frozen=True):
    """What the samples speak of: all of it in the workspace `default`, all of it of shared workflows."""

    workflow: str
    spare: str
    """A workflow that is archived by one of the samples."""
    execution: str
    run: str
    letter: str
    fingerprint: str
    done: str
    """An execution that succeeded, and its run."""
    done_run: str
    key: str
    etag: str
    trigger: str
    spare_trigger: str
    """A trigger that is removed by one of the samples."""


class Sample(Struct, frozen=True):
    """What to send; what depends on the world is made from it."""

    about: About
    body: Any = None
    query: str = ""
    headers: Callable[[World], Mapping[str, str]] = lambda world: {}
    path: Mapping[str, str] = {}
    uses_up_letters: bool = False

    def url(self, template: str, world: World) -> str:
        """The path with every parameter filled in."""
        values = _parameters(world)
        values |= {name: getattr(world, field) for name, field in self.path.items()}
        return (template + (f"?{self.query}" if self.query else "")).format(**values)

    def content(self, world: World) -> Any:
        return self.body(world) if callable(self.body) else self.body


def _parameters(world: World) -> dict[str, str]:
    return {
        "definitionId": world.workflow,
        "workflowId": world.workflow,
        "executionId": world.execution,
        "queueId": world.execution,
        "runId": world.run,
        "letterId": world.letter,
        "deadLetterId": world.letter,
        "keyId": world.key,
        "credentialName": A_CREDENTIAL,
        "triggerId": world.trigger,
        "token": "a-token-of-no-webhook",
        "path": "sample",
        "workspaceId": "default",
        "version": "1",
        "type": "noop",
        "hash": A_HASH,
    }


def of_workflow(body: Any = None, **more: Any) -> Sample:
    return Sample(About.WORKFLOW, body, **more)


def of_workspace(body: Any = None, **more: Any) -> Sample:
    return Sample(About.WORKSPACE, body, **more)


def of_part(body: Any = None, **more: Any) -> Sample:
    return Sample(About.PART, body, **more)


SAMPLES = {
    # Definitions
    "createDefinition": of_workspace(ONE),
    "validateDefinition": of_part(ONE),
    "listDefinitions": of_part(),
    "getDefinition": of_workflow(),
    "saveDefinitionVersion": of_workflow(ONE, headers=lambda world: {"If-Match": world.etag}),
    "publishDefinition": of_workflow({"version": 1}),
    "archiveDefinition": of_workflow(path={"definitionId": "spare"}),
    "deleteDefinition": of_workflow(path={"definitionId": "spare"}),
    "listDefinitionVersions": of_workflow(),
    "getDefinitionVersion": of_workflow(),
    "diffDefinition": of_workflow(query="from=1&to=1"),
    "listShares": of_workflow(),
    "shareDefinition": of_workflow({"subject": A_SUBJECT, "role": "viewer"}),
    "unshareDefinition": of_workflow(query=f"subject={A_SUBJECT}"),
    # Executions
    "startExecution": of_workflow(lambda world: {"workflowDefinitionId": world.workflow}),
    "startExecutions": of_workflow(lambda world: {"starts": [{"workflowDefinitionId": world.workflow}]}),
    "listExecutions": of_part(),
    "getExecution": of_workflow(),
    "getExecutionOutput": of_workflow(path={"executionId": "done"}),
    "listExecutionFiles": of_workflow(path={"executionId": "done"}),
    "getExecutionFile": of_workflow(path={"executionId": "done"}),
    "uploadFile": of_workspace(CONTENT),
    "listExecutionNodes": of_workflow(),
    "listExecutionEvents": of_workflow(),
    "listExecutionRuns": of_workflow(),
    "explainExecution": of_workflow(),
    "cancelExecution": of_workflow({}),
    "cancelExecutions": of_workflow(lambda world: {"workflowId": world.workflow, "dryRun": True}),
    "retryExecutions": of_workflow(lambda world: {"workflowId": world.workflow, "dryRun": True}),
    "countExecutions": of_part(),
    "listApprovals": of_part(),
    "pauseExecution": of_workflow({}),
    "resumeExecution": of_workflow({}),
    "retryExecution": of_workflow({}),
    "rerunExecution": of_workflow({"node": "a"}),
    "replayExecution": of_workflow({}),
    "signalExecution": of_workflow({"name": "sample"}),
    "approveExecution": of_workflow({"node": "a", "approved": True}),
    "getQueueItem": of_workflow(),
    # Runs, and who carries them out
    "listRuns": of_workflow(query="executionId={executionId}"),
    "getRun": of_workflow(),
    "getRunOutput": of_workflow(path={"runId": "done_run"}),
    "giveUpRun": of_workflow({}),
    "leaseRuns": of_workspace({"pool": "sample", "runnerId": "sample"}),
    "heartbeatRun": of_workspace({"leaseToken": "sample"}),
    "completeRun": of_workspace({"leaseToken": "sample"}),
    "failRun": of_workspace({"leaseToken": "sample", "error": {"type": "PERMANENT", "message": "sample"}}),
    # Dead letters
    "listDeadLetters": of_part(),
    "listDeadLetterGroups": of_part(),
    "getDeadLetter": of_workflow(),
    "requeueDeadLetter": of_workflow({}),
    "fixDeadLetter": of_workflow({"output": None}),
    "discardDeadLetter": of_workflow({}),
    "noteDeadLetter": of_workflow({"text": "sample"}),
    "requeueDeadLetters": of_workflow(lambda world: {"fingerprint": world.fingerprint}, uses_up_letters=True),
    "discardDeadLetters": of_workflow(lambda world: {"fingerprint": world.fingerprint}, uses_up_letters=True),
    # The names of old
    "listWorkflowExecutions": of_part(),
    "getWorkflowExecution": of_workflow(),
    "cancelWorkflowExecution": of_workflow({}),
    "pauseWorkflowExecution": of_workflow({}),
    "resumeWorkflowExecution": of_workflow({}),
    "listRunResources": of_workflow(query="executionId={executionId}"),
    "getRunResource": of_workflow(),
    "updateRunHeartbeat": of_workspace({"leaseToken": "sample"}),
    "listDeadLetterQueue": of_part(),
    "getDeadLetterEntry": of_workflow(),
    "requeueDeadLetterEntry": of_workflow({}),
    "discardDeadLetterEntry": of_workflow({}),
    # Round about
    "listBreakers": of_workspace(),
    "resetBreaker": of_workspace({"target": TARGET}),
    "publishEvent": of_workspace({"subject": "sample"}),
    "publishEvents": of_workspace({"events": [{"subject": "sample"}]}),
    "receiveCloudEvents": of_workspace({"specversion": "1.0", "id": "1", "source": "/s", "type": "sample"}),
    "listActivity": of_workspace(),
    "listWorkers": of_workspace(),
    "getMetrics": of_workspace(),
    # Streams
    "streamExecution": of_workflow(),
    "streamWorkflow": of_workflow(),
    "streamWorkspace": of_workspace(),
    "subscribeToExecution": of_workflow(),
    "subscribeToWorkflow": of_workflow(),
    "subscribeToWorkspace": of_workspace(),
    # What every caller may know who has a part in the workspace
    "listNodeTypes": of_part(),
    "getNodeType": of_part(),
    "evaluateExpression": of_part({"expression": "1 + 1"}),
    # Workspaces, and who is in them
    "listWorkspaces": of_part(),
    "getWorkspace": of_part(),
    "createWorkspace": of_workspace({"id": "sample"}),
    "changeWorkspace": of_workspace({"slots": None}),
    "createKey": of_workspace({"name": "sample", "role": "viewer"}),
    "listKeys": of_workspace(),
    "revokeKey": of_workspace(),
    # Credentials
    "listCredentialTypes": of_part(),
    "createCredential": of_workspace({"name": "made", "type": "generic", "values": {"value": "sample"}}),
    "listCredentials": of_workspace(),
    "getCredential": of_workspace(),
    "changeCredential": of_workspace({"values": {"value": "another"}}),
    "removeCredential": of_workspace(path={"credentialName": "spare"}),
    "testCredential": of_workspace({}),
    "listPermits": of_workspace(),
    "shareCredential": of_workspace({"subject": A_SUBJECT}),
    "unshareCredential": of_workspace(query=f"subject={A_SUBJECT}"),
    "rotateMasterKey": of_workspace({}),
    # Triggers
    "listTriggers": of_workspace(),
    "createTrigger": of_workflow(lambda world: {"workflowId": world.workflow, "settings": {"every": "1h"}}),
    "previewTrigger": of_workspace({"settings": {"every": "1h"}}),
    "getTrigger": of_workflow(),
    "removeTrigger": of_workflow(path={"triggerId": "spare_trigger"}),
    "enableTrigger": of_workflow({}),
    "disableTrigger": of_workflow({}),
    "fireTrigger": of_workflow({}),
    "testTrigger": of_workflow({}),
    "backfillTrigger": of_workflow({"since": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z", "dryRun": True}),
    "previewNext": of_workflow(),
    "listFires": of_workflow(),
    "explainTrigger": of_workflow(),
    "listMembers": of_workspace(),
    "putMember": of_workspace({"subject": A_SUBJECT, "role": "viewer"}),
    "removeMember": of_workspace(query=f"subject={A_SUBJECT}"),
    "closeSession": of_part(),
    "getMe": of_part(),
}
