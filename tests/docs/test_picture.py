"""The picture of the README is what its command draws from a real run."""

import re
import subprocess
import sys
from html import unescape
from pathlib import Path

from tests.cli.conftest import ROOT

PICTURE = ROOT / "docs" / "picture.svg"
PATIENCE = 180.0


def told(svg: str) -> list[str]:
    """The lines that a person reads in the picture."""
    lines: dict[str, str] = {}
    for place, text in re.findall(r'<text class="ropewalk-r[^>]* y="([\d.]+)"[^>]*>(.*?)</text>', svg):
        lines[place] = f"{lines.get(place, '')} {unescape(text)}"
    return [" ".join(line.split()) for line in lines.values()]


def shape(svg: str) -> list[str]:
    """The same without ids, lengths of time and bars, which differ from run to run."""
    return [re.sub(r"[0-9a-f]{8}-[-0-9a-f]{27}|[\d.]+m?s\b|━+", "", line).strip() for line in told(svg)]


def test_the_command_draws_the_picture_that_is_kept(tmp_path: Path):
    target = tmp_path / "picture.svg"

    subprocess.run([sys.executable, "-m", "tools.picture", "--to", str(target)], cwd=ROOT, check=True, timeout=PATIENCE)

    assert shape(target.read_text(encoding="utf-8")) == shape(PICTURE.read_text(encoding="utf-8"))


def test_the_picture_shows_the_live_view_of_a_run_then_the_same_execution_resumed():
    lines = told(PICTURE.read_text(encoding="utf-8"))
    killed = next(place for place, line in enumerate(lines) if line.startswith("Killed"))
    before, after = "\n".join(lines[:killed]), "\n".join(lines[killed:])

    assert re.search(r"● pay RUNNING", before)
    assert re.search(r"✓ pay SUCCESS ×2", after)
    assert re.findall(r"order v1 (\S+) RUNNING", before) == re.findall(r"order v1 (\S+) SUCCESS", after) != []


def test_the_picture_fetches_nothing():
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", PICTURE.read_text(encoding="utf-8")) == []
