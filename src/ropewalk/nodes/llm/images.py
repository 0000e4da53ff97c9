"""Pictures for a model: by address, or the content of files, within bounds."""

import base64
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from ropewalk.nodes.context import NodeContext
from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.files import File, file_of
from ropewalk.nodes.llm.speech import Image

JSON: TypeAlias = Any

MOST_IMAGES: Final = 20
LARGEST_IMAGE: Final = 5 * 1024 * 1024
LONGEST_ADDRESS: Final = 8_192
TYPES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")


async def images_of(given: Sequence[JSON], context: NodeContext) -> tuple[Image, ...]:
    """The pictures; a permanent failure for what is neither an address nor a file that is one."""
    return tuple([await _image(each, place, context) for place, each in enumerate(given)])


async def _image(given: JSON, place: int, context: NodeContext) -> Image:
    if isinstance(given, str):
        # The service fetches it, not this worker.
        if not given.startswith(("https://", "http://")) or len(given) > LONGEST_ADDRESS:
            raise NodeFailure.permanent(f"with.images[{place}]: is no address like https://shop.example/cup.png")
        return Image(url=given)
    file = file_of(given)
    if file is None:
        raise NodeFailure.permanent(f"with.images[{place}]: must be an address or a file")
    return await _content(file, place, context)


async def _content(file: File, place: int, context: NodeContext) -> Image:
    kind = file.type.partition(";")[0].strip().lower()
    if kind not in TYPES:
        raise NodeFailure.permanent(f"with.images[{place}]: is {kind}, and models take {', '.join(TYPES)}")
    if file.size > LARGEST_IMAGE:
        raise NodeFailure.permanent(f"with.images[{place}]: is larger than {LARGEST_IMAGE // 1024 // 1024} MiB")
    content = b"".join([chunk async for chunk in context.files.read(file)])
    return Image(type=kind, data=base64.b64encode(content).decode())
