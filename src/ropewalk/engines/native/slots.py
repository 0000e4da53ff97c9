"""Who may start nodes: slots per workspace, and one active execution per concurrency key.

Taken before the commit that records it and given back after it, so that a crash can only have counted too many.
"""

from collections import Counter
from collections.abc import Callable

from ropewalk.core.events import ExecutionAccepted

Limit = Callable[[str], int | None]


class Slots:
    """The slots and keys in use, of every workspace."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._used: Counter[str] = Counter()
        self._keys: dict[tuple[str, str], str] = {}

    def is_free(self, accepted: ExecutionAccepted) -> bool:
        """Whether the execution could have a slot now, and its key."""
        limit = self._limit(accepted.workspace)
        return (limit is None or self._used[accepted.workspace] < limit) and self.key_holder(accepted) is None

    def is_limited(self, accepted: ExecutionAccepted) -> bool:
        """Whether others may be waiting for what it needs, so that it has to take its turn."""
        return accepted.concurrency_key is not None or self._limit(accepted.workspace) is not None

    def has_room(self, workspace: str) -> bool:
        limit = self._limit(workspace)
        return limit is None or self._used[workspace] < limit

    def key_holder(self, accepted: ExecutionAccepted) -> str | None:
        """Who else holds the key; an ancestor's key may be used by its children."""
        if accepted.concurrency_key is None:
            return None
        holder = self._keys.get((accepted.workspace, accepted.concurrency_key))
        family = (accepted.execution, *(accepted.parent.ancestors if accepted.parent else ()))
        return None if holder in family else holder

    def take(self, accepted: ExecutionAccepted) -> bool:
        """Take a slot and the key; whether the key is the execution's own, and not borrowed from an ancestor."""
        self._used[accepted.workspace] += 1
        return self.take_key(accepted)

    def take_key(self, accepted: ExecutionAccepted) -> bool:
        if accepted.concurrency_key is None:
            return False
        key = (accepted.workspace, accepted.concurrency_key)
        return self._keys.setdefault(key, accepted.execution) == accepted.execution

    def give_back(self, accepted: ExecutionAccepted) -> None:
        self._used[accepted.workspace] -= 1

    def give_back_key(self, accepted: ExecutionAccepted) -> None:
        """The execution ended; a key it used as a child stays with its holder."""
        key = (accepted.workspace, accepted.concurrency_key or "")
        if self._keys.get(key) == accepted.execution:
            del self._keys[key]

    def used(self, workspace: str) -> int:
        return self._used[workspace]
