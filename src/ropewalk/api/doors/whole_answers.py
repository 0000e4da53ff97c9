"""Answers that are whole before the first byte of them goes out: written at once, and read at once by the client."""

from typing import Final

from starlette.types import Message, Send

WHOLE: Final = "ropewalk.whole"
"""In the scope of a request: writes a whole answer, or says that it has to go the usual way; only our server has it."""
ANSWER: Final = "ropewalk.answer"
"""The type of a message that is a whole answer: its status, its headers, and its body."""


async def in_parts(answer: Message, send: Send) -> None:
    """Send the answer in the two messages that every ASGI server takes."""
    await send({"type": "http.response.start", "status": answer["status"], "headers": answer["headers"]})
    await send({"type": "http.response.body", "body": answer["body"]})
