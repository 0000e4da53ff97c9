"""What goes wrong on a loop where no task waits for it: told in a line of our log, not in a traceback on stderr.

A driver leaves such things behind when its connections are cut: futures that no task asks any more, transports that end
with an error. The reason is told again, to the next statement that needs the connection.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

_log = logging.getLogger("ropewalk.process")


def tell_in_a_line(loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
    """The exception handler of a loop that is ours."""
    error = context.get("exception")
    message = str(context.get("message") or "something failed that no task waited for").partition("\n")[0]
    if error is not None and _is_of_a_connection(error):
        _log.warning("a connection was cut (%s: %s)", type(error).__name__, str(error).replace("\n", " "))
    else:
        _log.error("%s", message, exc_info=error)


def _is_of_a_connection(error: BaseException) -> bool:
    # By its name: a process without PostgreSQL does without the driver.
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] == "asyncpg"
