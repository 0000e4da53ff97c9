"""Texts to values and back: templates, JSON, CSV, XML."""

import pytest

from ropewalk.core.definition import parse_definition
from ropewalk.core.errors import ErrorType, InvalidDefinition
from ropewalk.nodes import tables, xml
from ropewalk.nodes.base import NodeFailure


async def failure(run, type_name, with_):
    with pytest.raises(NodeFailure) as caught:
        await run(type_name, with_)
    assert caught.value.error.type is ErrorType.PERMANENT
    return caught.value.error.message


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("plain <b> 100% %>", "plain <b> 100% %>"),
        ("<% input.name %>!", "Ada!"),
        ("<%input.missing%>|<% null %>|<% 2.0 %>|<% [1] %>", "||2|[1]"),
        ("<% each input.list %><% index %>=<% item %>,<% end %>", "0=1,1=2,"),
        ("<% each input.list %><% each [item, item] %><% item %><% end %>;<% item %> <% end %>", "11;1 22;2 "),
        ("<% each null %>x<% end %>", ""),
        ("<% if input.list %>yes<% else %>no<% end %>", "yes"),
        ("<% if false %>yes<% end %>", ""),
        ("<% {a: 1}.a %>", "1"),
        ("{{ '<% input.name %>' }}", "{{ 'Ada' }}"),
    ],
)
async def test_a_template_is_filled_in(run, template, text):
    made = await run("text.template", {"template": template, "data": {"name": "Ada", "list": [1, 2]}})

    assert made.value == text


async def test_values_can_be_written_so_that_they_are_no_html(run):
    with_ = {"template": "<p><% input %></p>", "data": "<script>&\"'", "escape": "html"}

    assert (await run("text.template", with_)).value == "<p>&lt;script&gt;&amp;&quot;&#x27;</p>"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("a\n<% input.", "line 2: <% without %>"),
        ("a\n<% input. %>", "line 2: "),
        ("\n\n<% end %>", "line 3: end does not belong here"),
        ("<% else %>", "line 1: else does not belong here"),
        ("<% if a %>", "line 1: "),
        ("<% each input %>", "line 1: each without end"),
        ("<% vars.x %>", "line 1: there is no vars here; a template knows input, item, index"),
        ("<% if 1 %>" * 20, "line 1: is nested more than 16 levels deep"),
        ("<% 1 %>" * 10_001, "has more than 10,000 marks"),
    ],
)
def test_a_template_that_makes_no_sense_is_refused_when_it_is_saved(registry, template, message):
    document = {
        "ropewalk": 1,
        "name": "t",
        "nodes": [{"id": "a", "type": "text.template", "with": {"template": template}}],
    }

    with pytest.raises(InvalidDefinition) as refused:
        parse_definition(document, registry.infos())

    assert str(refused.value.problems[0]).startswith(f"nodes[0].with.template: {message}")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("\n<% input + 1 %>", "with.template: line 2: "),
        ("<% each 5 %><% end %>", "with.template: line 1: each needs a list"),
        (
            f"{'<% each input %>' * 4}x{'<% end %>' * 4}",
            "with.template: line 1: the template takes too many steps",
        ),
        ("<% each input %><% each input %>" + "x" * 1000 + "<% end %><% end %>", "with.template: the text is longer"),
    ],
)
async def test_a_template_that_fails_says_where_and_always_ends(run, template, message):
    assert (await failure(run, "text.template", {"template": template, "data": [0] * 200})).startswith(message)


@pytest.mark.parametrize(
    ("with_", "value"),
    [
        ({"value": ' {"a": [1, 2.5, null]} '}, {"a": [1, 2.5, None]}),
        ({"value": "1\n\n[2]\n", "lines": True}, [1, [2]]),
        ({"do": "write", "value": {"b": 1, "a": "é"}}, '{"b":1,"a":"é"}'),
        ({"do": "write", "value": {"b": 1, "a": 2}, "sortKeys": True}, '{"a":2,"b":1}'),
        ({"do": "write", "value": [1], "indent": 2}, "[\n  1\n]"),
        ({"do": "write", "value": None}, "null"),
    ],
)
async def test_json_is_read_and_written(run, with_, value):
    assert (await run("json", with_)).value == value


@pytest.mark.parametrize(
    ("with_", "message"),
    [
        ({"value": "{"}, "with.value: is no JSON: "),
        ({"value": "NaN"}, "with.value: is no JSON: "),
        ({"value": "1\n{", "lines": True}, "with.value: line 2: is no JSON: "),
        ({"value": "[" * 100_000}, "with.value: is n"),
        ({"value": {"a": 1}}, "with: value must be the text or file to read; to write a value say do: write"),
        ({"do": "write", "value": 1, "lines": True}, "with: lines writes a list"),
        ({}, "with.value: Field required"),
    ],
)
async def test_what_is_no_json_is_a_permanent_failure_with_the_field(run, with_, message):
    assert (await failure(run, "json", with_)).startswith(message)


@pytest.mark.parametrize(
    ("with_", "rows"),
    [
        ({"text": "a,b\n1,2\r\n\n3\n"}, [{"a": "1", "b": "2"}, {"a": "3", "b": ""}]),
        ({"text": '\ufeffa\n"x ""y""\nz"\n'}, [{"a": 'x "y"\nz'}]),
        ({"text": "1\t2", "header": False, "delimiter": "tab"}, [["1", "2"]]),
        ({"text": "1,2", "header": ["x", "y"]}, [{"x": "1", "y": "2"}]),
        ({"text": "junk\na\n 1 \n2\n3", "skip": 1, "limit": 2, "trim": True}, [{"a": "1"}, {"a": "2"}]),
        ({"text": "a,b\n1,\n", "types": {"a": "integer", "b": "number"}}, [{"a": 1, "b": None}]),
        ({"text": ""}, []),
    ],
)
async def test_csv_is_read(run, with_, rows):
    assert (await run("csv.parse", with_)).value == rows


@pytest.mark.parametrize(
    ("with_", "message"),
    [
        ({"text": "a\n1,2"}, "with.text: line 2: has 2 fields for 1 columns"),
        ({"text": "a,a\n1,2"}, "with.text: two columns are called 'a'"),
        ({"text": 'a\n"1'}, "with.text: line 2: "),
        ({"text": "a\n" + "1" * 200_000}, "with.text: line 2: field larger than field limit"),
        ({"text": "a\nx", "types": {"a": "number"}}, "with.text: line 2: a: 'x' cannot be read as a number"),
        ({"text": "a\nx", "types": {"b": "number"}}, "with.types.b: there is no such column"),
        ({"text": "a", "delimiter": "::"}, "with.delimiter: "),
        ({"text": "a", "delimiter": '"'}, "with.delimiter: "),
    ],
)
async def test_what_is_no_table_is_a_permanent_failure_with_its_line(run, with_, message):
    assert (await failure(run, "csv.parse", with_)).startswith(message)


@pytest.mark.parametrize(
    ("with_", "text"),
    [
        ({"items": [{"a": 1}, {"b": None, "a": "x;y"}]}, "a,b\n1,\nx;y,\n"),
        ({"items": [{"a": {"b": True}}], "columns": ["a.b"], "header": False}, "true\n"),
        ({"items": [[1, "a"], ['"']], "delimiter": ";"}, '1;a\n""""\n'),
        ({"items": [{"a": 1}], "quote": "all"}, '"a"\n"1"\n'),
        ({"items": [{"a": "=1"}, {"a": -1}], "escapeFormulas": True}, "a\n'=1\n-1\n"),
    ],
)
async def test_csv_is_written(run, with_, text):
    assert (await run("csv.write", with_)).value == text


async def test_items_that_are_no_rows_are_a_permanent_failure(run):
    assert await failure(run, "csv.write", {"items": [{"a": 1}, 2]}) == (
        "with.items[1]: must be an object, or all items lists"
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("<a/>", {"a": ""}),
        ('<a x="1">t</a>', {"a": {"@x": "1", "#text": "t"}}),
        ("<a><b>1</b><b>2</b></a>", {"a": {"b": ["1", "2"]}}),
        ("<a><c>1</c></a>", {"a": {"c": ["1"]}}),
        ("<a>&lt;&#65;<![CDATA[<b>]]></a>", {"a": "<A<b>"}),
        ('<?xml version="1.0" encoding="latin-1"?><a>ü</a>', {"a": "ü"}),
    ],
)
async def test_xml_is_read(run, text, value):
    assert (await run("xml", {"value": text, "lists": ["c"]})).value == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<a>", "with.value: is no XML: no element found: line 1"),
        ("", "with.value: is no XML: "),
        ("<a>&x;</a>", "with.value: is no XML: undefined entity"),
        ('<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "with.value: has a document type"),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "with.value: has a document type"),
        ("<a>" * 60, "with.value: has more than 50 levels"),
        ("\ud800", "with.value: has a lone surrogate"),
    ],
)
async def test_what_is_no_xml_or_asks_for_more_than_itself_is_a_permanent_failure(run, text, message):
    assert (await failure(run, "xml", {"value": text})).startswith(message)


async def test_xml_is_written_and_read_again(run):
    value = {"a": {"@x": '"<', "b": ["1", {"c": "&>"}], "d": ""}}
    text = (await run("xml", {"do": "write", "value": value})).value

    assert (await run("xml", {"value": text})).value == value


async def test_xml_is_indented(run):
    text = (await run("xml", {"do": "write", "value": {"a": {"b": [1, None]}}, "indent": 2})).value

    assert text.splitlines()[1:] == ["<a>", "  <b>1</b>", "  <b/>", "</a>"]


@pytest.mark.parametrize("value", [{"a b": 1}, {"a": {"@1": 1}}, {"a": "\0"}, {"a": {"<": 1}}, {"a": 1, "b": 2}, [1]])
async def test_what_xml_cannot_say_is_a_permanent_failure(run, value):
    assert (await failure(run, "xml", {"do": "write", "value": value})).startswith("with")


async def test_texts_and_elements_are_bounded(run, monkeypatch):
    monkeypatch.setattr(xml, "MOST_ELEMENTS", 10)
    monkeypatch.setattr(tables, "MOST_ROWS", 3)

    assert "more than 10 elements" in await failure(run, "xml", {"value": f"<a>{'<b/>' * 10}</a>"})
    assert "more than 3 rows" in await failure(run, "csv.parse", {"text": "a\n1\n2\n3\n4"})
    for type_name, with_ in (("json", {"value": "1" * 2**24 + "1"}), ("xml", {"value": " " * 2**24 + "<a/>"})):
        assert "is longer than 16,384 Ki characters" in await failure(run, type_name, with_)
