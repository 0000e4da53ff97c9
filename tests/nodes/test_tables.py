"""Tables and values as files: CSV, JSON and workbooks, streamed and within their limits."""

import io
import json
import zipfile
from datetime import date, datetime

import openpyxl
import pytest

from ropewalk.core.errors import ErrorType
from ropewalk.nodes import xlsx_reading
from ropewalk.nodes.base import NodeFailure

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ROWS = [{"id": str(n), "name": f"Ünal {n}"} for n in range(20_000)]
CSV = "id,name\n" + "".join(f"{row['id']},{row['name']}\n" for row in ROWS)
LINES = "".join(json.dumps(row, separators=(",", ":"), ensure_ascii=False) + "\n" for row in ROWS)


@pytest.fixture
def value(run):
    async def of(type_name, **inputs):
        return (await run(type_name, inputs)).value

    return of


@pytest.fixture
def failure(value):
    async def fail(type_name, **inputs):
        with pytest.raises(NodeFailure) as caught:
            await value(type_name, **inputs)
        assert caught.value.error.type is ErrorType.PERMANENT
        return caught.value.error.message

    return fail


# CSV


async def test_the_rows_of_a_file_are_read_across_its_parts(value, keep):
    assert await value("csv.parse", file=await keep(CSV)) == ROWS


async def test_the_rows_of_a_file_become_json_lines_and_a_table_again(value, keep, content):
    made = await value("csv.parse", file=await keep(CSV, "o.csv"), **{"as": "file"})
    back = await value("csv.write", file=made, fileName="back.csv")

    assert (made["$file"]["name"], made["$file"]["type"]) == ("o.jsonl", "application/x-ndjson")
    assert (await content(made)).decode() == LINES
    assert (await content(back)).decode() == CSV
    assert back["$file"]["name"] == "back.csv"


async def test_a_list_is_written_as_a_file_too(value, content):
    made = await value("csv.write", items=ROWS, **{"as": "file"})

    assert (await content(made)).decode() == CSV


async def test_a_part_of_a_file_is_read_by_skip_and_limit(value, keep):
    rows = await value("csv.parse", file=await keep(CSV), header=["id", "name"], skip=11, limit=2)

    assert [row["id"] for row in rows] == ["10", "11"]


@pytest.mark.parametrize(
    ("text", "encoding"), [("a,b\r\nß,2\r\n", "windows-1252"), ("a,b\nß,2\n", "utf-16"), ("a,b\nß,2\n", "latin-1")]
)
async def test_a_file_is_read_in_its_encoding(value, keep, text, encoding):
    assert await value("csv.parse", file=await keep(text.encode(encoding)), encoding=encoding) == [{"a": "ß", "b": "2"}]


async def test_the_mark_in_front_of_a_text_is_none_of_it(value, keep):
    assert await value("csv.parse", file=await keep(b"\xef\xbb\xbfa\n1\n")) == [{"a": "1"}]


async def test_a_field_may_have_line_ends_and_what_other_programs_take_for_one(value, keep):
    assert await value("csv.parse", file=await keep('a,b\n"x\ny",u\u2028v\n')) == [{"a": "x\ny", "b": "u\u2028v"}]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"a,b\n\xff\xff\n", "is no text in utf-8"),
        (b"a,b\n1,2,3\n", "line 2: has 3 fields for 2 columns"),
        (b"a,a\n1,2\n", "two columns are called 'a'"),
        (b'a\n"x', "line 2"),
        (b"a\n" + b"x" * 1_100_000, "line 2: is longer than 1,048,576 characters"),
    ],
)
async def test_a_file_that_is_no_table_fails_for_good_and_says_where(failure, keep, raw, message):
    file = await keep(raw)

    assert message in await failure("csv.parse", file=file)
    assert message in await failure("csv.parse", file=file, **{"as": "file"})


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('{"a":1}\n{"b":1}\n', "line 2: the first has no 'b'; give columns"),
        ('{"a":1}\n[1]\n', "line 2: must be like the first"),
        ('{"a":1}\n{\n', "line 2: is no JSON"),
        ("1\n", "must have objects, or lists alone"),
    ],
)
async def test_lines_that_are_no_table_fail_for_good(failure, keep, lines, message):
    assert message in await failure("csv.write", file=await keep(lines))


async def test_lists_and_chosen_columns_come_from_files_too(value, keep, content):
    lists = await value("csv.write", file=await keep("[1,2]\n\n[3]\n"))
    chosen = await value("csv.write", file=await keep('{"a":{"b":1}}\n{"c":2}\n'), columns=["a.b", "c"])
    none = await value("csv.write", file=await keep(""))

    assert [await content(each) for each in (lists, chosen, none)] == [b"1,2\n3\n", b"a.b,c\n1,\n,2\n", b""]


@pytest.mark.parametrize("inputs", [{}, {"text": "a", "file": {}}, {"text": "a", "as": "file"}])
async def test_a_table_is_a_text_or_a_file(failure, inputs):
    assert await failure("csv.parse", **inputs)


async def test_what_is_no_file_is_named(failure):
    assert await failure("csv.parse", file={"a": 1}) == (
        "with.file: is no file; give the value that a node or an upload gave"
    )


# JSON


async def test_json_is_read_from_files_and_written_to_them(value, keep, content):
    made = await value("json", do="write", value={"ü": [1]}, **{"as": "file"})
    lines = await value("json", do="write", value=[1, 2], lines=True, fileName="n.jsonl", **{"as": "file"})

    assert (made["$file"]["name"], made["$file"]["type"]) == ("value.json", "application/json")
    assert await value("json", value=made) == {"ü": [1]}
    assert lines["$file"]["name"] == "n.jsonl"
    assert await content(lines) == b"1\n2\n"
    assert await value("json", value=lines, lines=True) == [1, 2]


async def test_a_file_that_is_no_json_fails_for_good(failure, keep):
    large = {"$file": {"hash": "0" * 64, "size": 17 * 2**20, "name": "x", "type": "text/csv"}}

    assert "is no JSON" in await failure("json", value=await keep("{"))
    assert "is no text" in await failure("json", value=await keep(b"\xff"))
    assert "larger than 16 MiB" in await failure("json", value=large)


# Workbooks


@pytest.fixture
def book(keep):
    """Keeps a workbook of these rows as a file."""

    async def made(*rows, sheet="Sheet1", second=()):
        workbook = openpyxl.Workbook()
        workbook.active.title = sheet
        for row in rows:
            workbook.active.append(row)
        if second:
            workbook.create_sheet("Other").append(second)
        content = io.BytesIO()
        workbook.save(content)
        return await keep(content.getvalue(), "b.xlsx", XLSX)

    return made


async def test_rows_are_written_as_a_workbook_and_read_again(value, keep, content):
    rows = [{"id": 1, "x": 1.5, "is": True, "text": "ü", "none": None, "inner": {"a": [1]}}, {"id": 2}]
    made = await value("xlsx.write", items=rows, sheet="Orders", fileName="o.xlsx")
    read = await value("xlsx.read", file=made)

    assert (made["$file"]["name"], made["$file"]["type"]) == ("o.xlsx", XLSX)
    assert read == {
        "sheet": "Orders",
        "sheets": ["Orders"],
        "rows": [
            {"id": 1, "x": 1.5, "is": True, "text": "ü", "none": None, "inner": '{"a":[1]}'},
            {"id": 2, "x": None, "is": None, "text": None, "none": None, "inner": None},
        ],
    }


async def test_rows_go_from_file_to_file(value, keep, content):
    made = await value("xlsx.write", file=await keep(LINES))
    back = await value("xlsx.read", file=made, **{"as": "file"})

    assert (await content(back["file"])).decode() == LINES
    assert back["sheet"] == "Sheet1"


async def test_a_sheet_is_chosen_by_name_or_number_and_moments_are_texts(value, failure, book):
    file = await book(["a", date(2026, 5, 1)], [datetime(2026, 5, 1, 12), None], [], ["x"], second=["y"])  # noqa: DTZ001 -- cells have no zone

    assert (await value("xlsx.read", file=file, header=False))["rows"] == [
        ["a", "2026-05-01T00:00:00"], ["2026-05-01T12:00:00"], ["x"],
    ]  # fmt: skip
    for sheet in ("Other", 2):
        assert (await value("xlsx.read", file=file, header=False, sheet=sheet))["rows"] == [["y"]]
    assert "there are Sheet1, Other" in await failure("xlsx.read", file=file, sheet="None")
    assert "there are Sheet1, Other" in await failure("xlsx.read", file=file, sheet=3)
    assert (await value("xlsx.read", file=file, header=["k", "v"], skip=1, limit=1))["rows"] == [
        {"k": "2026-05-01T12:00:00", "v": None}
    ]


async def test_a_text_is_never_written_as_a_formula(value, content):
    made = await value("xlsx.write", items=[["=1+1", "x\x00y"]])
    sheet = openpyxl.load_workbook(io.BytesIO(await content(made))).active

    assert [(cell.value, cell.data_type) for cell in sheet[1]] == [("=1+1", "s"), ("xy", "s")]


@pytest.mark.parametrize("raw", [b"", b"PK", b"no archive", b"PK\x05\x06" + bytes(18)])
async def test_what_is_no_workbook_fails_for_good(failure, keep, raw):
    assert "is no workbook" in await failure("xlsx.read", file=await keep(raw))


def archive(**parts):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in parts.items():
            made.writestr(name.replace("__", "/") + ".xml", text)
    return content.getvalue()


async def test_an_archive_that_unpacks_to_too_much_is_refused_before_it_is_parsed(failure, keep, monkeypatch):
    monkeypatch.setattr(xlsx_reading, "MOST_TAGS", 1_000)

    bombs = [archive(a=b"x" * (17 * 2**20)), archive(xl__worksheets__sheet1=b"<x/>" * 2_000)]
    told = [await failure("xlsx.read", file=await keep(each)) for each in bombs]
    monkeypatch.setattr(xlsx_reading, "MOST_PARTS", 2)
    told.append(await failure("xlsx.read", file=await keep(archive(a=b"", b=b"", c=b""))))
    monkeypatch.setattr(xlsx_reading, "LARGEST_WHOLE", 10)
    told.append(await failure("xlsx.read", file=await keep(archive(a=b"x" * 11))))

    assert ["16 MiB unpacked" in told[0], "cells" in told[1], "2 parts" in told[2], "unpacked" in told[3]] == [True] * 4


async def test_entities_are_not_expanded(failure, keep, book, content):
    original = zipfile.ZipFile(io.BytesIO(await content(await book(["a"], ["b"]))))
    parts = {name: original.read(name) for name in original.namelist()}
    bomb = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
    sheet = parts["xl/worksheets/sheet1.xml"]
    parts["xl/worksheets/sheet1.xml"] = bomb + sheet[sheet.index(b"<worksheet") :].replace(b"<v>0</v>", b"<v>&b;</v>")
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as written:
        for name, text in parts.items():
            written.writestr(name, text)

    assert "is no workbook" in await failure("xlsx.read", file=await keep(made.getvalue()))


async def test_a_sheet_that_lies_about_its_width_costs_no_more(value, keep, book, content):
    original = zipfile.ZipFile(io.BytesIO(await content(await book(["a"], ["b"]))))
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as written:
        for name in original.namelist():
            text = original.read(name)
            written.writestr(name, text.replace(b'ref="A1:A2"', b'ref="A1:XFD1048576"'))

    assert (await value("xlsx.read", file=await keep(made.getvalue())))["rows"] == [{"a": "b"}]


@pytest.mark.parametrize(
    ("items", "message"),
    [([{"a": 1}, {"b": 1}], "item 2: the first has no 'b'"), ([1], "item 1: must be an object"),
     ([["x" * 32_768]], "32,767 characters")],
)  # fmt: skip
async def test_what_no_sheet_can_have_fails_for_good(failure, files, items, message):
    assert message in await failure("xlsx.write", items=items)
