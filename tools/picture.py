"""`make picture`: draws docs/picture.svg from a real run that is killed in the middle and resumed.

Both commands run in a terminal of their own; what is on its screen at the kill and at the end is drawn as it stands.
"""

import argparse
import fcntl
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

TARGET: Final = Path(__file__).parent.parent / "docs" / "picture.svg"
ROWS: Final = 40
COLUMNS: Final = 100
DRAWN_COLUMNS: Final = 70
"""The live view leaves the right of a wide terminal to what goes wrong; the picture does without."""

PATIENCE: Final = 60.0

NODES: Final = '''
"""Node types of the picture: each takes as long as a real one might."""

import asyncio

from ropewalk import NodeContext, node


@node
async def work(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"


@node
async def stock(context: NodeContext) -> int:
    await asyncio.sleep(0.3)
    if context.attempt == 1:
        raise ConnectionError("the warehouse does not answer")
    return 40
'''

WORKFLOW: Final = """
ropewalk: 1
name: order
nodes:
  - { id: order, type: work, with: { seconds: 0.4 } }
  - { id: price, type: work, with: { seconds: 0.9 } }
  - { id: stock, type: stock, retry: { delay: 600ms, jitter: 0 } }
  - { id: customer, type: work, with: { seconds: 0.6 } }
  - { id: pay, type: work, with: { seconds: 1.6 } }
  - { id: parcels, type: work, forEach: [1, 2, 3, 4], concurrency: 2, with: { seconds: 0.5 } }
  - { id: invoice, type: work, with: { seconds: 0.7 } }
  - { id: ship, type: work, with: { seconds: 0.4 } }
edges:
  - { from: order, to: price }
  - { from: order, to: stock }
  - { from: order, to: customer }
  - { from: price, to: pay }
  - { from: stock, to: pay }
  - { from: customer, to: pay }
  - { from: pay, to: parcels }
  - { from: pay, to: invoice }
  - { from: parcels, to: ship }
  - { from: invoice, to: ship }
output: "{{ nodes.ship.output }}"
"""

FILES: Final = {"nodes.py": NODES, "order.yaml": WORKFLOW, "ropewalk.toml": 'nodes = ["nodes.py"]\n'}

# The live view as it is worth a picture: `pay` is under way, everything before it is recorded.
IN_THE_MIDDLE: Final = re.compile(r"● pay\s+RUNNING\s+(?:[6-9]\d\dms|1\.\ds)")

# Rich's own form without the fonts it would fetch: a picture in a README may fetch nothing.
FORMAT: Final = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 20px }}
.{unique_id}-title {{ font-family: sans-serif; font-size: 18px; font-weight: bold }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""

# What a terminal obeys, as far as the live view uses it: up one line, erase a line, colours, the cursor shown or not.
_CONTROL: Final = re.compile(r"(\r|\n|\x1b\[1A|\x1b\[2K|\x1b\[\?25[lh])")


class Screen:
    """The lines of a terminal on which whole lines are erased and written again."""

    def __init__(self) -> None:
        self.lines: list[str] = [""]
        self._row = 0

    def feed(self, text: str) -> None:
        """What a program wrote."""
        for part in _CONTROL.split(text):
            match part:
                case "\n":
                    self._row += 1
                    if self._row == len(self.lines):
                        self.lines.append("")
                case "\x1b[1A":
                    self._row -= 1
                case "\x1b[2K":
                    self.lines[self._row] = ""
                case "\r" | "\x1b[?25l" | "\x1b[?25h":
                    pass
                case _:
                    self.lines[self._row] += part

    @property
    def text(self) -> str:
        """What a person reads on it."""
        return "\n".join(Text.from_ansi(line).plain for line in self.lines)


def ropewalk(folder: str, *words: str, until: Callable[[Screen], bool] | None = None) -> Screen:
    """Carry a command out in a terminal; kill it once its screen is as `until` says."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    screen = Screen()
    environment = {**os.environ, "TERM": "xterm-256color"}
    with subprocess.Popen(
        [sys.executable, "-m", "ropewalk", *words],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, env=environment, cwd=folder,
    ) as process:  # fmt: skip
        os.close(theirs)
        watch(ours, screen, process, until)
    os.close(ours)
    if process.returncode != (0 if until is None else -signal.SIGKILL):
        sys.exit(f"{shlex.join(['ropewalk', *words])} ended with {process.returncode}:\n{screen.text}")
    return screen


def watch(
    terminal: int, screen: Screen, process: "subprocess.Popen[bytes]", until: Callable[[Screen], bool] | None
) -> None:
    """Read what a command writes until it ends, or until its screen is good for a kill."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 1.0)[0]:
            continue
        try:
            screen.feed(os.read(terminal, 65536).decode())
        except OSError:  # the command has ended, and its terminal with it
            return
        if until is not None and until(screen):
            os.killpg(process.pid, signal.SIGKILL)
            return
    process.kill()


def record() -> tuple[Screen, Screen]:
    """The screens of a run that is killed and of the command that goes on with it."""
    with tempfile.TemporaryDirectory(prefix="ropewalk-picture-") as folder:
        for name, content in FILES.items():
            (Path(folder) / name).write_text(content, encoding="utf-8")
        killed = ropewalk(folder, "run", "order.yaml", until=lambda screen: bool(IN_THE_MIDDLE.search(screen.text)))
        return killed, ropewalk(folder, "resume", "last")


def drawn(killed: Screen, resumed: Screen) -> str:
    """The whole story as SVG, as a person would type and see it."""
    console = Console(record=True, width=DRAWN_COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")
    prompt(console, "ropewalk run order.yaml")
    show(console, killed)
    console.print(Text("Killed", style="bold red"), Text("  kill -9, while the payment is under way", style="dim"))
    console.print()
    prompt(console, "ropewalk resume last")
    show(console, resumed)
    return console.export_svg(title="ropewalk", theme=THEME, unique_id="ropewalk", code_format=FORMAT)


def prompt(console: Console, line: str) -> None:
    console.print(Text.assemble(("$ ", "bold green"), (line, "bold")))


def show(console: Console, screen: Screen) -> None:
    for line in "\n".join(screen.lines).rstrip().split("\n"):
        console.print(Text.from_ansi(line), no_wrap=True, overflow="crop")


def _colour(value: int) -> tuple[int, int, int]:
    return value >> 16, value >> 8 & 255, value & 255


def _colours(*values: int) -> list[tuple[int, int, int]]:
    return [_colour(value) for value in values]


THEME: Final = TerminalTheme(
    _colour(0x0D1117),
    _colour(0xE6EDF3),
    _colours(0x484F58, 0xFF7B72, 0x3FB950, 0xD29922, 0x58A6FF, 0xBC8CFF, 0x39C5CF, 0xB1BAC4),
    _colours(0x6E7681, 0xFFA198, 0x56D364, 0xE3B341, 0x79C0FF, 0xD2A8FF, 0x56D4DD, 0xFFFFFF),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=TARGET, help="where to write it")
    target = parser.parse_args().to
    target.write_text(drawn(*record()), encoding="utf-8")
    print(f"wrote {target.name}")


if __name__ == "__main__":
    main()
