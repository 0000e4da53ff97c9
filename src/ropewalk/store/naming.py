"""Which blobs and files a text names: a log entry, or a large value, as they are kept.

By the encoded text: no event is left out, wherever it names one, and most entries are done after one look.
"""

import re
from typing import Final

NAMES_BLOB: Final = b'","size":'
"""What is in every entry that names a blob, and in hardly any other."""
NAMES_FILE: Final = b'"$file":'
"""What is in every text that names a file: a value of a user, so its fields may come in any order."""

_BLOB: Final = re.compile(rb'"hash":"([0-9a-f]{64})","size":\d')
_ANY: Final = re.compile(rb'"hash":"([0-9a-f]{64})"')


def named_in(entry: bytes) -> list[str]:
    """The hashes of the blobs and files a log entry names, wherever it does; perhaps of more, never of less."""
    if NAMES_FILE in entry:
        return _hashes(_ANY, entry)
    return _hashes(_BLOB, entry) if NAMES_BLOB in entry else []


def files_named_in(text: bytes) -> list[str]:
    """The hashes of the files that a value names, as JSON; perhaps of more, never of less."""
    return _hashes(_ANY, text) if NAMES_FILE in text else []


def _hashes(pattern: re.Pattern[bytes], text: bytes) -> list[str]:
    return [digest.decode() for digest in dict.fromkeys(pattern.findall(text))]
