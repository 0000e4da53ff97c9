"""The documents that were saved here, so that a start with the same one neither checks nor saves it again.

A document is the same if its JSON text is and if it is equal: `true` and 1 are equal in Python and differ as text, and
what JSON cannot say (NaN) has the text of something else. Of each name only the last document is known: a caller
that starts two documents of one name in turn saves and publishes each of them in turn.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from ropewalk.core.canonical import JSON
from ropewalk.engines.base import Version

Save = Callable[[JSON, str], Coroutine[Any, Any, Version]]
MOST: Final = 1_000
"""So many names are known; a program that makes a name for each execution leaves no more behind."""
_encode = msgspec.json.Encoder().encode


class _Kept(Struct):
    """A document and its text; `saving` is under way until there is a version."""

    text: bytes
    document: JSON
    saving: "asyncio.Future[Version] | None" = None
    version: Version | None = None

    def is_same(self, text: bytes, document: JSON) -> bool:
        return self.text == text and bool(self.document == document)


class DocumentCache:
    """The last document of each name that was saved here, and its version; `save` checks and stores one."""

    def __init__(self, save: Save) -> None:
        self._save = save
        self._latest: dict[str, Version] = {}
        self._kept: dict[str, _Kept] = {}

    def latest(self, name: str) -> Version | None:
        """The version that was saved last under this name, if nothing has changed the workflow here since."""
        return self._latest.get(name)

    def is_last(self, version: Version) -> bool:
        """Whether this is the version of the last document of its name that was saved, or asked to be."""
        kept = self._kept.get(version.plan.definition.name)
        return kept is not None and kept.version is version

    def find(self, document: JSON) -> Version | None:
        """The version of a document that is the last one saved under its name."""
        kept = self._kept.get(_name_of(document))
        if kept is None or kept.version is None:
            return None
        text = _text_of(document)
        return kept.version if text is not None and kept.is_same(text, document) else None

    async def save(self, document: JSON, by: str) -> Version:
        """The version of a document, which is checked and stored; callers who come meanwhile with the same share it."""
        name, text = _name_of(document), _text_of(document)
        copy = None if text is None else msgspec.json.decode(text)
        if text is None or not name or copy != document:
            return await self._save_unknown(document, by)
        kept = self._kept.get(name)
        if kept is None or kept.saving is None or not kept.is_same(text, document):
            kept = self._begin(name, _Kept(text, copy), by)
        assert kept.saving is not None, "it has just begun"
        # A caller that leaves must not take the version away from the others.
        return await asyncio.shield(kept.saving)

    async def _save_unknown(self, document: JSON, by: str) -> Version:
        """What is not plain JSON (it may have tuples) is checked each time, and is the last of its name then."""
        version = self._noted(await self._save(document, by))
        self._kept.pop(version.plan.definition.name, None)
        return version

    def _begin(self, name: str, kept: _Kept, by: str) -> _Kept:
        """Documents of one name are saved one after the other, so that the last one asked for is the one published."""
        before = self._kept.get(name)
        self._kept[name] = kept
        work = self._save_after(None if before is None else before.saving, name, kept, by)
        kept.saving = asyncio.ensure_future(work)
        # The callers hear of a failure; if all of them have left, it is not reported as an unread one.
        kept.saving.add_done_callback(lambda done: done.cancelled() or done.exception())
        return kept

    async def _save_after(self, other: "asyncio.Future[Version] | None", name: str, kept: _Kept, by: str) -> Version:
        if other is not None:
            await asyncio.wait([other])
        try:
            # A document of its own: neither the caller, who may change theirs meanwhile, nor a node can change it.
            kept.version = self._noted(await self._save(msgspec.json.decode(kept.text), by))
        except BaseException:
            if self._kept.get(name) is kept:
                del self._kept[name]
            raise
        finally:
            kept.saving = None
        return kept.version

    def _noted(self, version: Version) -> Version:
        if len(self._latest) >= MOST:
            self.forget(next(iter(self._latest)))
        self._latest[version.plan.definition.name] = version
        return version

    def forget(self, name: str) -> None:
        """The workflow of this name was changed by other means."""
        self._latest.pop(name, None)
        self._kept.pop(name, None)


def _name_of(document: JSON) -> str:
    """The name in a document, as far as it has one; it may be anything before it is checked."""
    name = document.get("name") if isinstance(document, Mapping) else None
    return name if isinstance(name, str) else ""


def _text_of(document: JSON) -> bytes | None:
    """The document as JSON; None if it is none, which is for the check to say."""
    try:
        return _encode(document)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None
