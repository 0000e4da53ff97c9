"""Files that go along with a mail: in memory whole, as mail programs want them, so there is a limit to all together."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from ropewalk.nodes.context import NodeContext
from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.files import file_name, media_type
from ropewalk.nodes.streams import given_file

MOST_ATTACHED: Final = 50
LARGEST_ATTACHED: Final = 20 * 2**20


class Attachment(Struct, frozen=True):
    """One file with its content."""

    name: str
    type: str
    content: bytes


async def attachments_of(values: Sequence[Any], context: NodeContext) -> list[Attachment]:
    """The files that values are, read; a permanent failure for what is none, or is too much for a mail."""
    files = [given_file(value, f"with.attachments[{at}]") for at, value in enumerate(values)]
    # Before anything is read: what a value says of its size is held against the content.
    if sum(file.size for file in files) > LARGEST_ATTACHED:
        raise NodeFailure.permanent(
            f"with.attachments: are larger than {LARGEST_ATTACHED // 2**20} MiB together; send a link instead"
        )
    made: list[Attachment] = []
    for file in files:
        content = b"".join([chunk async for chunk in context.files.read(file)])
        made.append(Attachment(file_name(file.name), media_type(file.type), content))
    return made
