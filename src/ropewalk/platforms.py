"""Where Ropewalk runs: it locks files and signals processes as POSIX systems do."""

import sys


def refusal() -> str | None:
    """Why Ropewalk cannot execute on this platform; None where it can."""
    if sys.platform == "win32":
        return "Ropewalk runs on Linux and macOS, not on Windows: use it there inside WSL 2, or a server elsewhere"
    return None
