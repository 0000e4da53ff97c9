"""Dead letters on a server: look through them, work them off."""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote

from ropewalk.client.answers import DeadLetter, DeadLetterGroup, DeadLetterProgress
from ropewalk.client.talking import PAGE, Item, Series, Talk, get, post, said
from ropewalk.client.verbs import Speaker, listing, verb
from ropewalk.core.canonical import JSON

PATH: Final = "/workflow/dead-letters"
STEP: Final = 30.0
"""For how many seconds a server works many letters off before it says how far it is, and a little more."""
STOPPED: Final[DeadLetterProgress] = {
    "id": None,
    "executionId": None,
    "outcome": "STOPPED",
    "reason": "enough of those that were tried again have failed again",
}


def _path(letter: str, *more: str) -> str:
    return "/".join((PATH, quote(letter, safe=""), *more))


class DeadLetterVerbs(Speaker):
    """What can be done about runs that gave up. A dead letter is resolved once: Conflict for the second caller."""

    @listing
    def dead_letters(self, resolution: str | None = "PENDING", *, execution: str | None = None,
                     workflow: str | None = None, node: str | None = None, fingerprint: str | None = None,
                     since: str | None = None, until: str | None = None, id_part: str | None = None,
                     limit: int | None = None) -> Series[DeadLetter]:  # fmt: skip
        """Dead letters, the newest first; `workflow` is an id or a name, times are RFC 3339, None is any resolution.

        With `id_part`, only those whose id begins or ends so.
        """
        about = {"executionId": execution, "workflowId": workflow, "node": node, "fingerprint": fingerprint,
                 "idPart": id_part}  # fmt: skip
        return self._pages(PATH, limit, resolution=resolution, **about, **{"from": since, "to": until})

    @listing
    def dead_letter_groups(self, limit: int | None = None) -> Series[DeadLetterGroup]:
        """What failed alike, the most frequent first."""
        return self._pages(f"{PATH}/groups", limit)

    @verb
    def dead_letter(self, letter: str) -> Talk[DeadLetter]:
        """One dead letter."""
        return self._ask(get(_path(letter)))

    @verb
    def requeue(self, letter: str, overrides: Mapping[str, JSON] | None = None) -> Talk[str]:
        """Try it again, with other inputs if wanted; the id of its execution, which goes on."""
        body = said(overrides=None if overrides is None else dict(overrides))
        answer = yield from self._ask(post(_path(letter, "requeue"), body))
        return str(answer["executionId"])

    @verb
    def fix(self, letter: str, output: JSON, ports: Sequence[str] = ()) -> Talk[str]:
        """Supply the output it failed to give; the id of its execution, which goes on."""
        answer = yield from self._ask(post(_path(letter, "fix"), {"output": output, "ports": list(ports)}))
        return str(answer["executionId"])

    @verb
    def discard(self, letter: str, notes: str | None = None) -> Talk[DeadLetter]:
        """Close it without doing anything about it."""
        return self._ask(post(_path(letter, "discard"), said(notes=notes)))

    @verb
    def note(self, letter: str, text: str) -> Talk[DeadLetter]:
        """Say something about it, for the next reader."""
        return self._ask(post(_path(letter, "notes"), {"text": text}, doubles=True))

    # Many

    @listing
    def requeue_all(self, fingerprint: str, *, rate: float | None = None, stop_after_failures: int | None = None,
                    limit: int | None = None) -> Series[DeadLetterProgress]:  # fmt: skip
        """Try all that failed alike again, the oldest first, at most `rate` a second; what becomes of each.

        After so many that failed again, the last word is STOPPED.
        """
        body = {"fingerprint": fingerprint, **said(rate=rate, stopAfterFailures=stop_after_failures)}
        return self._worked_off("requeue", body, limit)

    @listing
    def discard_all(self, fingerprint: str, notes: str | None = None, *,
                    limit: int | None = None) -> Series[DeadLetterProgress]:  # fmt: skip
        """Close all that failed alike; what becomes of each."""
        return self._worked_off("discard", {"fingerprint": fingerprint, **said(notes=notes)}, limit)

    def _worked_off(self, what: str, body: dict[str, JSON], most: int | None) -> Series[DeadLetterProgress]:
        """Step by step, as the server takes them up."""
        cursor: str | None = None
        while most is None or most > 0:
            size = PAGE if most is None else min(PAGE, most)
            about = {**body, "limit": size, **said(cursor=cursor)}
            step = yield from self._ask(post(f"{PATH}/{what}", about, seconds=STEP))
            for letter in step["letters"]:
                yield Item(letter)
            if step["stopped"]:
                yield Item(STOPPED)
            cursor = step["next"]
            if cursor is None:
                return
            most = None if most is None else most - sum(each["outcome"] != "FAILED" for each in step["letters"])
