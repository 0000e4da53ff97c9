"""Many executions of a workspace: counted, told together, and what of them waits for a person."""

from typing import Any, TypedDict, Unpack

from ropewalk.client.dlq import STEP
from ropewalk.client.executions import PATH
from ropewalk.client.talking import PAGE, Item, Series, Talk, get, post, said
from ropewalk.client.verbs import Speaker, listing, verb
from ropewalk.core.canonical import JSON


class Count(TypedDict):
    """How many there are; `exact` is false where there are more than were counted."""

    count: int
    exact: bool


class Answerers(TypedDict):
    """Who may answer: any of these roles; `subjects` is null for callers who may not administer."""

    roles: list[str]
    subjects: list[str] | None


class Approval(TypedDict):
    """A node that waits for a person."""

    executionId: str
    workflow: str
    workflowId: str
    node: str
    item: int | None
    title: str
    details: JSON
    since: str | None
    expiresAt: str | None
    mayAnswer: bool
    answerers: Answerers
    payloads: bool


class Chosen(TypedDict, total=False):
    """Which executions are told something together; at least one of these."""

    workflow: str
    state: str
    trigger: str
    since: str
    until: str
    search: str
    waiting: bool
    all: bool


class ExecutionProgress(TypedDict):
    """What became of one of many: DONE, SKIPPED (it had changed by itself) or REFUSED."""

    id: str
    outcome: str
    reason: str | None


class ManyVerbs(Speaker):
    """What can be asked about, or told to, many executions at once."""

    @verb
    def count_executions(self, *, workflow: str | None = None, state: str | None = None, trigger: str | None = None,
                         since: str | None = None, until: str | None = None, search: str | None = None,
                         waiting: bool = False, before: str | None = None) -> Talk[Count]:  # fmt: skip
        """How many executions the same list has; counted up to ten thousand."""
        wanted = filters(workflow, state, trigger, since, until, search)
        return self._ask(get(f"{PATH}-count", {**wanted, "waiting": waiting or None, "before": before}))

    @listing
    def approvals(self, workflow: str | None = None, limit: int | None = None) -> Series[Approval]:
        """What waits for a person, those of the newest executions first, and who may answer."""
        return self._pages("/workflow/approvals", limit, workflowId=workflow)

    # Many executions

    @verb
    def count_to_cancel(self, **chosen: Unpack[Chosen]) -> Talk[Count]:
        """How many executions `cancel_all` would tell."""
        return self._counted("cancel", chosen)

    @verb
    def count_to_retry(self, **chosen: Unpack[Chosen]) -> Talk[Count]:
        """How many executions `retry_all` would tell."""
        return self._counted("retry", chosen)

    @listing
    def cancel_all(self, *, reason: str | None = None, limit: int | None = None,
                   **chosen: Unpack[Chosen]) -> Series[ExecutionProgress]:  # fmt: skip
        """Stop executions that are not over, the oldest first; what became of each."""
        return self._told_all("cancel", {**_body(chosen), **said(reason=reason)}, limit)

    @listing
    def retry_all(self, *, limit: int | None = None, **chosen: Unpack[Chosen]) -> Series[ExecutionProgress]:
        """Try executions that failed or timed out again, the oldest first; what became of each."""
        return self._told_all("retry", _body(chosen), limit)

    def _counted(self, what: str, chosen: Chosen) -> Talk[Count]:
        answer = yield from self._ask(post(f"{PATH}/{what}", {**_body(chosen), "dryRun": True}, repeats=True))
        return {"count": answer["count"], "exact": answer["exact"]}

    def _told_all(self, what: str, body: dict[str, JSON], most: int | None) -> Series[ExecutionProgress]:
        """Step by step, as the server tells them."""
        cursor: str | None = None
        while most is None or most > 0:
            size = PAGE if most is None else min(PAGE, most)
            step = yield from self._ask(
                post(f"{PATH}/{what}", {**body, "limit": size, **said(cursor=cursor)}, seconds=STEP)
            )
            for each in step["executions"]:
                yield Item(each)
            cursor = step["next"]
            if cursor is None:
                return
            most = None if most is None else most - len(step["executions"])


def filters(workflow: str | None, state: str | None, trigger: str | None, since: str | None, until: str | None,
            search: str | None) -> dict[str, Any]:  # fmt: skip
    """The filters of a list of executions."""
    about = {"workflowId": workflow, "state": state, "trigger": trigger, "search": search}
    return {**about, "from": since, "to": until}


def _body(chosen: Chosen) -> dict[str, JSON]:
    """The same where many executions are told something; what the caller does not say is left out."""
    wanted = filters(
        chosen.get("workflow"), chosen.get("state"), chosen.get("trigger"), chosen.get("since"), chosen.get("until"),
        chosen.get("search"),
    )  # fmt: skip
    flags = {name: True for name in ("waiting", "all") if chosen.get(name)}
    return {**said(**wanted), **flags}
