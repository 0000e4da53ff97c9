"""What people look at fits their terminal; `python -m tests.cli.views.test_widths` writes the expected texts anew."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.scenes import LETTER, ORDER, OTHER_LETTER, REFUND, SCENES, TRACEBACK, captured

EXPECTED = Path(__file__).parents[1] / "expected"
WIDTHS = (40, 80, 100, 160)


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Moments are shown in the zone of the reader."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scene", SCENES)
def test_every_view_looks_as_it_was_looked_at(scene: str, width: int):
    expected = (EXPECTED / f"{scene}-{width}.txt").read_text(encoding="utf-8")

    assert captured(scene, width) == expected


NAMES = {
    "run_under_way": ("wanted", "price", "stock", "enough", "more", "ship", "decline", "RUNNING", "SUCCESS", "WAITING"),
    "run_failed": ("stock", "FAILED", "BLOCKED", "ropewalk dlq show", "--set KEY=JSON", "ropewalk retry"),
    "executions_ls": ("refund-of-an-order v1", "FAILED", "RUNNING", "SUCCESS", "CANCELLED"),
    "executions_show": ("wanted", "more", "RUNNING", "waits for approval"),
    "executions_show_failed": ("stock", "FAILED", "BLOCKED", TRACEBACK),
    "explain": ("ask_the_manager", "each[0]", "RUNNING", "WAITING", "ask_the_manager\n", "each --item 0\n"),
    "dlq_groups": ("1,204", "149252e5", "refund-of-an-order", "charge_customer", "warehouse"),
    "dlq_ls": ("charge_customer", "warehouse", "PENDING"),
    "approvals": ("refund-of-an-order", "ask_the_manager\n", "each[7]", "each --item 7\n", "user-4", "not yours"),
    "dlq_show": ("charge_customer", "PENDING", "--set KEY=JSON\n", "--output JSON\n", "--notes WHY\n"),
}
IDS = {"run_under_way": (ORDER,), "run_failed": (ORDER, LETTER), "executions_ls": (ORDER, REFUND),
       "executions_show": (ORDER,), "executions_show_failed": (ORDER,), "explain": (ORDER,), "dlq_groups": (),
       "dlq_ls": (LETTER, OTHER_LETTER), "dlq_show": (LETTER, REFUND), "approvals": (ORDER,)}  # fmt: skip


@pytest.mark.parametrize("scene", SCENES)
def test_no_id_state_name_or_command_is_lost_at_any_width(scene: str):
    for width in range(40, 200):
        shown = captured(scene, width)

        assert [name for name in NAMES[scene] if name not in shown] == [], f"at {width} columns"
        assert [name for name in IDS[scene] if name[-8:] not in shown] == [], f"at {width} columns"


@pytest.mark.parametrize("scene", SCENES)
def test_only_what_can_be_copied_is_longer_than_the_terminal_is_wide(scene: str):
    for width in range(40, 200):
        longer = [line for line in captured(scene, width).splitlines() if len(line) > width]

        copied = [line for line in longer if "ropewalk " in line or REFUND in line or line in TRACEBACK.splitlines()]
        assert longer == copied, f"at {width} columns"


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    time.tzset()
    for name in SCENES:
        for columns in WIDTHS:
            (EXPECTED / f"{name}-{columns}.txt").write_text(captured(name, columns), encoding="utf-8")
