"""Where Ropewalk runs, and what is said elsewhere."""

import subprocess
import sys

import pytest

# What the standard library and others load by themselves is loaded before: on this machine it fits no other platform.
WINDOWS = (
    "import aiohttp, asyncio, subprocess, sys, tempfile, click; sys.modules['fcntl'] = None; sys.platform = 'win32'; "
)
SENTENCE = "Ropewalk runs on Linux and macOS, not on Windows: use it there inside WSL 2, or a server elsewhere"


def on_windows(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A Python program as if on Windows, where there are no locks of `fcntl`."""
    return subprocess.run(
        [sys.executable, "-c", WINDOWS + program, *arguments], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("arguments", [("--help",), ("run", "order.yaml"), ("up",)])
def test_every_command_refuses_windows_in_one_sentence(arguments: tuple[str, ...]):
    ended = on_windows("from ropewalk.cli.main import main; main()", *arguments)

    assert ended.returncode == 2
    assert ended.stderr.startswith(f"ropewalk: {SENTENCE}")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["open", "run", "LocalEngine"])
def test_what_executes_inside_a_program_refuses_windows_by_the_same_sentence(name: str):
    ended = on_windows(f"import ropewalk; ropewalk.{name}")

    assert ended.returncode == 1
    assert f"ropewalk.core.errors.RopewalkError: {SENTENCE}" in ended.stderr


def test_a_client_of_a_server_is_not_refused():
    assert on_windows("import ropewalk; ropewalk.Client").returncode == 0
