"""Workbooks (.xlsx) row by row: what is in the archive is weighed before any of it is parsed."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from typing import IO, TYPE_CHECKING, Any, Final

from ropewalk.nodes.failure import NodeFailure

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook

LARGEST: Final = 100 * 2**20
MOST_PARTS: Final = 5_000
LARGEST_PART: Final = 16 * 2**20
LARGEST_TEXTS: Final = 64 * 2**20
LARGEST_SHEET: Final = 256 * 2**20
LARGEST_WHOLE: Final = 512 * 2**20
MOST_TAGS: Final = 8_000_000
"""Each takes memory in the parser, however well it was packed; a cell takes three or four."""
MOST_CELLS: Final = 10_000_000
_STEP: Final = 1024 * 1024


def missing_library() -> NodeFailure:
    """Why workbooks cannot be read or written here."""
    return NodeFailure.permanent("workbooks need a library that is not installed here: pip install 'ropewalk[xlsx]'")


@contextmanager
def opened(content: IO[bytes]) -> "Iterator[Workbook]":
    """The workbook, with the values that its formulas had when it was saved; a permanent failure if it is none."""
    try:
        import defusedxml  # noqa: F401 -- without it the next would read entities
        from openpyxl import load_workbook
    except ImportError:
        raise missing_library() from None
    weigh(content)
    content.seek(0)
    try:
        workbook = load_workbook(content, read_only=True, data_only=True, keep_links=False)
    except Exception as error:  # noqa: BLE001 -- what is damaged fails in many ways
        raise damaged(error) from None
    try:
        yield workbook
    finally:
        workbook.close()


def damaged(error: Exception) -> NodeFailure:
    """What the library says of a workbook that it cannot read."""
    return NodeFailure.permanent(f"with.file: is no workbook that can be read: {type(error).__name__}: {error}")


def weigh(content: IO[bytes]) -> None:
    """A permanent failure for what is no archive, or would take too much to parse."""
    try:
        with zipfile.ZipFile(content) as archive:
            parts = archive.infolist()
            if len(parts) > MOST_PARTS:
                raise _too_much(f"has more than {MOST_PARTS:,} parts")
            if sum(part.file_size for part in parts) > LARGEST_WHOLE:
                raise _too_much(f"is larger than {LARGEST_WHOLE // 2**20} MiB unpacked")
            _count_tags(archive, [part for part in parts if part.filename.endswith((".xml", ".rels"))])
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError, OSError, EOFError,
            ValueError) as error:  # fmt: skip
        raise damaged(error) from None


def _count_tags(archive: zipfile.ZipFile, parts: list[zipfile.ZipInfo]) -> None:
    tags = 0
    for part in parts:
        if part.file_size > _largest(part.filename):
            raise _too_much(f"has a part of more than {_largest(part.filename) // 2**20} MiB unpacked")
        # No more comes than the archive says there is.
        with archive.open(part) as opened_part:
            while some := opened_part.read(_STEP):
                tags += some.count(b"<")
                if tags > MOST_TAGS:
                    raise _too_much(f"has more than some {MOST_TAGS // 4:,} cells")


def _largest(name: str) -> int:
    if name.startswith("xl/worksheets/"):
        return LARGEST_SHEET
    return LARGEST_TEXTS if name == "xl/sharedStrings.xml" else LARGEST_PART


def _too_much(why: str) -> NodeFailure:
    return NodeFailure.permanent(f"with.file: {why}; save it as CSV, which is read in parts")


def sheet_named(workbook: "Workbook", sheet: str | int | None) -> Any:
    """The sheet of this name or number, the first by default."""
    names = workbook.sheetnames
    if isinstance(sheet, int):
        sheet = names[sheet - 1] if sheet <= len(names) else None
    elif sheet is None and names:
        sheet = names[0]
    found = workbook[sheet] if sheet in names else None
    if found is None or not hasattr(found, "reset_dimensions"):
        raise NodeFailure.permanent(f"with.sheet: there is no such sheet; there are {', '.join(names)[:300]}")
    # How large it is the file only says: a lie would make every row as long as the longest there can be.
    found.reset_dimensions()
    return found


def rows_of(sheet: Any) -> Iterator[tuple[int, list[Any]]]:
    """Every row that is not empty, with its number."""
    cells = 0
    try:
        for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
            cells += len(row) + 1
            if cells > MOST_CELLS:
                raise _too_much(f"has more than {MOST_CELLS:,} cells")
            values = [_plain(value) for value in row]
            while values and values[-1] is None:
                values.pop()
            if values:
                yield number, values
    except NodeFailure:
        raise
    except Exception as error:  # noqa: BLE001 -- what is damaged fails in many ways
        raise damaged(error) from None


def _plain(value: Any) -> Any:
    """A value of a cell as JSON."""
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, float) and value != value:
        return None
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
