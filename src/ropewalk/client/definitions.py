"""Workflows on a server: every save is the next version, one of them is published."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from ropewalk.client.definition_answers import (
    Changed,
    Definition,
    DefinitionSummary,
    Evaluated,
    NodeType,
    Saved,
    Verdict,
    Version,
    VersionDocument,
)
from ropewalk.client.talking import Request, Series, Talk, ask, get, post
from ropewalk.client.verbs import Speaker, listing, verb
from ropewalk.core.canonical import JSON
from ropewalk.core.errors import Conflict, InvalidInput, NotFound, Problem

PATH: Final = "/workflow/definitions"
_TRIES: Final = 5


def address(workflow: str, *more: str | int) -> str:
    """Where the workflow of this id or name is."""
    if not _is_addressable(workflow):
        words = f"{workflow!r} cannot stand in an address: name the workflow by its id, which `definition` gives"
        raise InvalidInput([Problem(("workflow",), words)])
    return "/".join((PATH, quote(workflow, safe=""), *map(str, more)))


def _is_addressable(workflow: str) -> bool:
    """Whether a server finds it in the path of a request: a slash there ends a step, and dots go up."""
    return "/" not in workflow and workflow not in ("", ".", "..")


class DefinitionVerbs(Speaker):
    """What can be done with workflows."""

    # Looking

    @listing
    def definitions(self, name: str = "", *, archived: bool = False) -> Series[DefinitionSummary]:
        """The workflows whose name begins like this, by name."""
        return self._pages(PATH, name=name or None, archived=archived)

    @verb
    def definition(self, workflow: str) -> Talk[Definition]:
        """The workflow of this id or name, with its latest document."""
        found = yield from _identified(workflow, self.line.patience)
        definition: Definition = yield from self._ask(get(address(found)))
        return definition

    @listing
    def versions(self, workflow: str) -> Series[Version]:
        """The versions of the workflow of this id or name, the newest first."""
        return self._pages(address(workflow, "versions"))

    @verb
    def version(self, workflow: str, version: int) -> Talk[VersionDocument]:
        """One version of the workflow of this id or name, with its document."""
        return self._ask(get(address(workflow, "versions", version)))

    @verb
    def diff(self, workflow: str, before: int, after: int) -> Talk[dict[str, Any]]:
        """What one version changes in another."""
        return self._ask(get(address(workflow, "diff"), {"from": before, "to": after}))

    @verb
    def validate(self, document: Mapping[str, JSON]) -> Talk[Verdict]:
        """Everything that is wrong with a document; nothing is stored."""
        return self._ask(post(f"{PATH}/validate", dict(document), repeats=True))

    @listing
    def node_types(self) -> Series[NodeType]:
        """What a node can be on this server."""
        return self._pages("/workflow/node-types")

    @verb
    def evaluate(self, expression: str, context: Mapping[str, JSON] | None = None) -> Talk[Evaluated]:
        """Try an expression on values of one's own."""
        body = {"expression": expression, "context": dict(context or {})}
        return self._ask(post("/workflow/expressions/evaluate", body, repeats=True))

    # Saving

    @verb
    def create(self, document: Mapping[str, JSON], *, publish: bool = False) -> Talk[Saved]:
        """Save a workflow under a name that is not taken; Conflict if it is."""
        return self._ask(_create(document, publish=publish))

    @verb
    def save(self, document: Mapping[str, JSON], *, publish: bool = False, on: str | None = None) -> Talk[Saved]:
        """Save the next version of the document's name, or its first; the same content is the same version.

        `on` is the hash of the version it was made from: Conflict if there is a later one. Without it, any version that
        is there is followed.
        """
        return saved(document, self.line.patience, publish=publish, on=on)

    @verb
    def publish(self, workflow: str, version: int) -> Talk[Changed]:
        """Starts that name no version take this one from now on."""
        return self._ask(post(address(workflow, "publish"), {"version": version}, repeats=True))

    @verb
    def archive(self, workflow: str) -> Talk[Changed]:
        """No new starts; what is queued still runs, and every version is kept."""
        return self._ask(post(address(workflow, "archive"), repeats=True))


def _identified(workflow: str, patience: float) -> Talk[str]:
    """What the workflow of this id or name is found by; the id where the name would not do."""
    if _is_addressable(workflow):
        return workflow
    found = yield from named(workflow, patience)
    if found is None:
        raise NotFound(f"there is no workflow {workflow!r}")
    return found["id"]


def named(name: str, patience: float, *, archived: bool = False) -> Talk[DefinitionSummary | None]:
    """The workflow of this name, if there is one; names that begin with it come after it."""
    page = yield from ask(get(PATH, {"name": name, "archived": archived, "limit": 1}), patience)
    found: list[DefinitionSummary] = page["items"]
    return found[0] if found and found[0]["name"] == name else None


def saved(document: Mapping[str, JSON], patience: float, *, publish: bool, on: str | None = None) -> Talk[Saved]:
    """Where the document went; a version saved at the same moment is followed, unless `on` says otherwise."""
    for tries_left in reversed(range(_TRIES)):
        try:
            return (yield from _saved(document, patience, publish=publish, on=on))
        except Conflict:
            if on is not None or not tries_left:
                raise
    raise AssertionError("the last try answers or raises")


def _saved(document: Mapping[str, JSON], patience: float, *, publish: bool, on: str | None) -> Talk[Saved]:
    name = document.get("name")
    known = (yield from named(name, patience, archived=True)) if isinstance(name, str) and name else None
    if known is None:
        answer = yield from ask(_create(document, publish=publish), patience)
    else:
        base = on or (yield from ask(get(address(known["id"])), patience))["hash"]
        answer = yield from ask(_revise(known["id"], document, base, publish=publish), patience)
    went: Saved = answer
    return went


def _create(document: Mapping[str, JSON], *, publish: bool) -> Request:
    # Not repeated by itself: whether a name that is taken now was taken by the first try is for `save` to find out.
    return post(PATH, dict(document), params={"publish": publish})


def _revise(workflow: str, document: Mapping[str, JSON], base: str, *, publish: bool) -> Request:
    headers = {"If-Match": f'"{base}"'}
    return post(address(workflow, "versions"), dict(document), params={"publish": publish}, headers=headers)
