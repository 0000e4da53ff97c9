"""Server-sent events, out of bytes as they come."""

from msgspec import Struct

from ropewalk.core.errors import RopewalkError


class Message(Struct, frozen=True):
    """One message of a stream; `id` is the last one that was said."""

    event: str
    data: str
    id: str


class Messages:
    """Takes bytes, gives the messages that are whole. A message without data is none."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._rest = b""
        self._event = self._id = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[Message]:
        """The messages that end in this chunk."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        found = [message for line in lines if (message := self._take(line.removesuffix(b"\r").decode())) is not None]
        if len(self._rest) + self._size > self._largest:
            raise RopewalkError(f"a message of the stream has more than {self._largest:,} bytes")
        return found

    def _take(self, line: str) -> Message | None:
        if not line:
            return self._whole()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "data":
                self._data.append(value)
                self._size += len(value)
            case "event":
                self._event = value
            case "id":
                self._id = value
        return None

    def _whole(self) -> Message | None:
        made = Message(self._event or "message", "\n".join(self._data), self._id) if self._data else None
        self._event, self._data, self._size = "", [], 0
        return made
