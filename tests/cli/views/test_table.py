"""The layout of tables: what is given up first, and what never is."""

from io import StringIO

import pytest
from rich.console import Console
from rich.text import Text

from ropewalk.cli.views.columns import bar, command, ident, kept, message, optional, prose, when
from ropewalk.cli.views.table import Table

ID = "01a1ecb4-9387-747e-8046-57be466c6cba"
AT = "2027-01-15 08:02:03"
LONG = "the warehouse does not answer, and its owner does not know when it will"


def drawn(table: Table, width: int, *, is_piped: bool = False) -> list[str]:
    to = Console(file=StringIO(), width=width, soft_wrap=is_piped)
    to.print(table, crop=False)
    assert isinstance(to.file, StringIO)
    return to.file.getvalue().splitlines()


def listed() -> Table:
    table = Table(ident("ID"), kept("STATE"), when("AT"), optional("TOOK"), message("ERROR"))
    table.add(ID, "FAILED", AT, "1.2s", LONG)
    return table


@pytest.mark.parametrize(
    ("width", "row"),
    [
        (200, f"{ID}  FAILED  {AT}  1.2s  {LONG}"),
        (113, f"{ID}  FAILED  {AT}  1.2s  {LONG[:39]}…"),
        (112, f"466c6cba  FAILED  01-15 08:02  1.2s  {LONG}"),
        (80, f"466c6cba  FAILED  01-15 08:02  1.2s  {LONG[:42]}…"),
        (57, f"466c6cba  FAILED  01-15 08:02  1.2s  {LONG[:19]}…"),
        (56, f"466c6cba  FAILED  01-15 08:02  {LONG[:24]}…"),
        (38, f"466c6cba  FAILED  {LONG[:19]}…"),
    ],
)
def test_messages_are_cut_first_then_ids_are_short_then_optional_columns_go(width: int, row: str):
    assert drawn(listed(), width)[-1] == row


def test_a_message_without_room_has_a_line_of_its_own():
    assert drawn(listed(), 30) == ["ID        STATE   AT", "466c6cba  FAILED  01-15 08:02", f"    {LONG[:25]}…"]


def test_what_is_no_terminal_gets_everything_whole():
    assert drawn(listed(), 10, is_piped=True)[-1] == f"{ID}  FAILED  {AT}  1.2s  {LONG}"


def test_a_command_is_never_broken_and_stands_below_its_row_if_need_be():
    table = Table(kept("NODE"), message("WHY"), command("DO"))
    table.add("ask", "waits", f"ropewalk approve {ID} ask")

    assert drawn(table, 80)[-1] == "ask   waits  ropewalk approve 466c6cba ask"
    assert drawn(table, 20)[-2:] == ["ask   waits", "    ropewalk approve 466c6cba ask"]


def test_names_that_do_not_fit_beside_each_other_stand_below_each_other():
    table = Table(kept("NODE"), kept("STATE"))
    table.add("a_rather_long_name", "RUNNING")

    assert drawn(table, 24) == ["NODE", "    STATE", "a_rather_long_name", "    RUNNING"]


def test_a_column_with_nothing_in_it_takes_no_room():
    table = Table(kept("NODE"), optional("TOOK"), message("ERROR"))
    table.add("a", "", None)

    assert drawn(table, 80) == ["NODE", "a"]


def test_a_bar_is_drawn_as_wide_as_there_is_room_for():
    table = Table(kept(), bar(), message(), gap=1)
    table.add("a", lambda width: Text("━" * width), LONG)

    assert [drawn(table, width)[0].count("━") for width in (160, 100, 60, 40)] == [40, 25, 15, 10]


def test_prose_is_wrapped_beside_its_name_and_a_long_word_stays_whole():
    table = Table(kept(), prose())
    table.add("id", ID)
    table.add("reason", Text("it was refused\nby the bank"))

    assert drawn(table, 30) == [f"id      {ID}", "reason  it was refused", "        by the bank"]


def test_a_name_of_wide_signs_keeps_the_columns_in_line():
    table = Table(kept("NAME"), kept("STATE"))
    table.add("注文", "RUNNING")
    table.add("order", "FAILED")

    assert drawn(table, 80)[1:] == ["注文   RUNNING", "order  FAILED"]


def test_a_text_cannot_draw():
    table = Table(kept("NODE"))
    table.add("a\x1b[2J\nb")

    assert drawn(table, 80)[1:] == ["a\\x1b[2J b"]
