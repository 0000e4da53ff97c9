"""What is believed, for how long, and how much of it."""

from ropewalk.access.cache import CACHED_FOR, Cache
from ropewalk.core.duration import SECOND


class Source:
    """Something to look up, and how often that was done."""

    def __init__(self, value: str) -> None:
        self.value = value
        self.asked = 0
        self.now = 0

    async def look_up(self) -> str:
        self.asked += 1
        return self.value


def test_what_is_let_go_is_out_within_five_seconds():
    assert CACHED_FOR < 5 * SECOND


async def test_what_was_found_is_believed_for_a_while_and_looked_up_after():
    source = Source("found")
    cache: Cache[str, str] = Cache(lambda: source.now)

    seen = []
    for source.now in (0, CACHED_FOR - 1, CACHED_FOR):
        await cache.ask("key", source.look_up)
        seen.append(source.asked)

    assert seen == [1, 1, 2]


async def test_what_was_not_found_is_looked_up_each_time():
    source = Source("")
    cache: Cache[str, str] = Cache(lambda: source.now)

    answers = [await cache.ask("key", source.look_up) for _ in range(3)]

    assert (answers, source.asked) == ([""] * 3, 3)


def test_nothing_is_believed_past_its_own_end():
    source = Source("found")
    cache: Cache[str, str] = Cache(lambda: source.now)
    cache.put("key", "value", 0, ends=10)

    source.now = 10

    assert cache.get("key") is None


def test_what_was_being_looked_up_while_something_changed_is_not_believed():
    source = Source("found")
    source.now = 5
    cache: Cache[str, str] = Cache(lambda: source.now)

    cache.forget()
    cache.put("key", "how it was", 4)

    assert cache.get("key") is None
    assert cache.has_known("key")


def test_there_are_never_more_than_so_many():
    cache: Cache[int, str] = Cache(lambda: 0, most=10)

    for key in range(1_000):
        cache.put(key, "value", 0)

    assert sum(cache.has_known(key) for key in range(1_000)) <= 10
