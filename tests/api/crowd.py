"""A crowd of readers in a process of their own: says `ready` when all are there, and at the end what they have seen.

Asked as `python -m tests.api.crowd URL PATH COUNT TOKEN…`.
"""

import asyncio
import json
import re
import sys
from collections import Counter
from typing import Any

from tests.api.streams import Listener


async def listen(url: str, path: str, count: int, tokens: list[str]) -> dict[str, Any]:
    """What so many readers were told: every different story with how many heard it."""
    listeners = [await Listener.connect(url, path, tokens[place % len(tokens)]) for place in range(count)]
    snapshots = await asyncio.gather(*(listener.take(1) for listener in listeners))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    said = await asyncio.gather(*(listener.unparsed() for listener in listeners))
    stories = Counter((place[0].data["seq"], *_numbers(each)) for place, each in zip(snapshots, said, strict=True))
    for listener in listeners:
        listener.hang_up()
    return {
        "stories": [{"heard": heard, "numbers": story} for story, heard in stories.items()],
        "reasons": Counter(json.loads(each.rpartition(b"data: ")[2])["reason"] for each in said),
    }


def _numbers(said: bytes) -> list[int]:
    return [int(number) for number in re.findall(rb"^id: (\d+)$", said, re.MULTILINE)]


if __name__ == "__main__":
    url, path, count, *tokens = sys.argv[1:]
    sys.stdout.write(json.dumps(asyncio.run(listen(url, path, int(count), tokens))))
