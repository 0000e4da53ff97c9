"""The headers of a request: which an author may set, and how one takes the place of another."""

import re

from msgspec.structs import replace

from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.http.call import Request

# What the request itself decides; a second opinion would let one request look like two.
OWN_HEADERS = frozenset({"connection", "content-length", "host", "te", "trailer", "transfer-encoding", "upgrade"})
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\uffff]*")


def check_header(name: str, value: str) -> None:
    """ValueError for a header that is not the author's to set, or could be read as two."""
    if not _NAME.fullmatch(name):
        raise ValueError("a header's name is not allowed")
    if name.lower() in OWN_HEADERS:
        raise ValueError(f"the header {name} is set by the request itself")
    if not _VALUE.fullmatch(value):
        raise ValueError(f"the header {name} has a line break or another character that is not allowed")


def with_header(request: Request, name: str, value: str) -> Request:
    """The request with this header, in place of one of the same name; a permanent failure if it is not allowed."""
    try:
        check_header(name, value)
    except ValueError as error:
        raise NodeFailure.permanent(str(error)) from None
    kept = {known: given for known, given in request.headers.items() if known.lower() != name.lower()}
    return replace(request, headers={**kept, name: value})
