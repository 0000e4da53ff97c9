"""Triggers of a workspace: listed, made, switched, fired, tried out, filled in; and what became of them."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from ropewalk.client.talking import Series, Talk, delete, get, post
from ropewalk.client.verbs import Speaker, listing, verb
from ropewalk.core.canonical import JSON

PATH: Final = "/triggers"


class TriggerVerbs(Speaker):
    """What can be done with triggers; each is named by its id, or by its name if no other has the same."""

    @listing
    def triggers(self, *, workflow: str | None = None, limit: int | None = None) -> Series[dict[str, Any]]:
        """What starts workflows besides a call; `workflow` is an id or a name."""
        return self._pages(PATH, limit, workflowId=workflow)

    @verb
    def trigger(self, trigger: str) -> Talk[dict[str, Any]]:
        """One trigger: how it stands, when it is due next, and the address of a webhook."""
        return self._ask(get(_path(trigger)))

    @verb
    def create_trigger(self, workflow: str, settings: Mapping[str, JSON]) -> Talk[dict[str, Any]]:
        """Start a workflow by itself from now on; `settings` are an entry of `triggers` in a definition."""
        # Sent twice it would make two triggers.
        return self._ask(post(PATH, {"workflowId": workflow, "settings": dict(settings)}, doubles=True))

    @verb
    def remove_trigger(self, trigger: str) -> Talk[bool]:
        """Take away a trigger that is not part of the definition; False if it was gone."""
        answer = yield from self._ask(delete(_path(trigger)))
        return bool(answer["changed"])

    @verb
    def enable_trigger(self, trigger: str) -> Talk[bool]:
        """Let it fire from now on; False if it did."""
        answer = yield from self._ask(post(f"{_path(trigger)}/enable", {}, repeats=True))
        return bool(answer["changed"])

    @verb
    def disable_trigger(self, trigger: str) -> Talk[bool]:
        """Let it fire no more; False if it did not."""
        answer = yield from self._ask(post(f"{_path(trigger)}/disable", {}, repeats=True))
        return bool(answer["changed"])

    @verb
    def fire_trigger(self, trigger: str, event: Mapping[str, JSON] | None = None) -> Talk[dict[str, Any]]:
        """Start what it asks for now: `executionId`, or the `reason` why nothing was started."""
        return self._ask(post(f"{_path(trigger)}/fire", _told(event), doubles=True))

    @verb
    def test_trigger(self, trigger: str, event: Mapping[str, JSON] | None = None) -> Talk[dict[str, Any]]:
        """What it would start with this happening; nothing is started."""
        return self._ask(post(f"{_path(trigger)}/test", _told(event), repeats=True))

    @verb
    def backfill_trigger(self, trigger: str, since: str, until: str, *, concurrency: int = 1,
                         dry_run: bool = False) -> Talk[dict[str, Any]]:  # fmt: skip
        """Start what was due from one moment up to the other (RFC 3339), some at a time."""
        body: dict[str, JSON] = {"since": since, "until": until, "concurrency": concurrency, "dryRun": dry_run}
        return self._ask(post(f"{_path(trigger)}/backfill", body, repeats=dry_run, doubles=not dry_run))

    @verb
    def next_times(self, trigger: str, count: int = 5) -> Talk[dict[str, Any]]:
        """A schedule in words, and its next due times in UTC."""
        return self._ask(get(f"{_path(trigger)}/next", {"count": count}))

    @listing
    def fires(self, trigger: str, limit: int | None = None) -> Series[dict[str, Any]]:
        """What became of its due times, deliveries or messages, the latest first."""
        return self._pages(f"{_path(trigger)}/fires", limit)

    @verb
    def explain_trigger(self, trigger: str) -> Talk[dict[str, Any]]:
        """When it is due next, or why it starts nothing."""
        return self._ask(get(f"{_path(trigger)}/explain"))


def _path(trigger: str) -> str:
    return f"{PATH}/{quote(trigger, safe='')}"


def _told(event: Mapping[str, JSON] | None) -> dict[str, JSON]:
    return {} if event is None else {"event": dict(event)}
