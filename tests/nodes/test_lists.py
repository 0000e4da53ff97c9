"""The types that shape objects and lists."""

import pytest

from ropewalk.core.definition import parse_definition
from ropewalk.core.errors import ErrorType, InvalidDefinition
from ropewalk.nodes import lists, merging
from ropewalk.nodes.base import NodeFailure, Output

PEOPLE = [{"n": "Bob", "age": 9}, {"n": "ada", "age": 30}, {"n": "Cy"}, {"n": "Di", "age": 9}]


def names(output):
    return "".join(each["n"][0] for each in output.value)


@pytest.mark.parametrize(
    ("with_", "value"),
    [
        ({"values": {"a.b": 1}}, {"a.b": 1}),
        ({"from": {"a": 1}, "values": {"b": 2}}, {"a": 1, "b": 2}),
        ({"from": None, "values": {"b": 2}}, {"b": 2}),
        ({"from": {"a": {"x": 1, "y": 2}, "b": 3}, "keep": ["a.x"]}, {"a": {"x": 1}}),
        ({"from": {"a": {"x": 1, "y": 2}}, "drop": ["a.x", "z"]}, {"a": {"y": 2}}),
        ({"from": [{"a": 1}, {}], "fields": [{"path": "b.c", "value": 1}]}, [{"a": 1, "b": {"c": 1}}, {"b": {"c": 1}}]),
        ({"fields": [{"path": "n", "value": " 12 ", "type": "number"}]}, {"n": 12}),
        ({"fields": [{"path": "n", "value": "1.5", "type": "number"}]}, {"n": 1.5}),
        ({"fields": [{"path": "n", "value": 2.0, "type": "integer"}]}, {"n": 2}),
        ({"fields": [{"path": "n", "value": 7.0, "type": "text"}]}, {"n": "7"}),
        ({"fields": [{"path": "n", "value": {"a": [1]}, "type": "text"}]}, {"n": '{"a":[1]}'}),
        ({"fields": [{"path": "n", "value": "Yes", "type": "boolean"}]}, {"n": True}),
        ({"fields": [{"path": "n", "value": "[1]", "type": "list"}]}, {"n": [1]}),
        ({"fields": [{"path": "n", "value": '{"a": 1}', "type": "object"}]}, {"n": {"a": 1}}),
        ({"fields": [{"path": "n", "value": 0, "type": "datetime"}]}, {"n": "1970-01-01T00:00:00Z"}),
        ({"fields": [{"path": "n", "value": None, "type": "number"}]}, {"n": None}),
    ],
)
async def test_fields_are_set_kept_dropped_and_converted(run, with_, value):
    assert await run("set", with_) == Output(value)


@pytest.mark.parametrize(
    ("value", "kind"),
    [("x", "number"), (True, "number"), ("1e999", "number"), (1.5, "integer"), ("2**60", "integer"), (2, "boolean"),
     ("soon", "datetime"), (1e300, "datetime"), ("{", "list"), ("{}", "list"), ("[]", "object"), ("9" * 50, "number")],
)  # fmt: skip
async def test_a_value_that_cannot_be_converted_is_a_permanent_failure_with_its_field(run, value, kind):
    with pytest.raises(NodeFailure) as caught:
        await run("set", {"fields": [{"path": "a", "value": 1}, {"path": "b", "value": value, "type": kind}]})

    assert caught.value.error.type is ErrorType.PERMANENT
    assert caught.value.error.message.startswith("with.fields[1].value: ")
    assert "cannot be read as" in caught.value.error.message


@pytest.mark.parametrize(
    ("with_", "kept"),
    [
        ({"conditions": [{"field": "age", "operator": "greater", "right": 5}]}, "BaD"),
        ({"conditions": [{"field": "age", "operator": "missing"}]}, "C"),
        ({"conditions": [{"field": "age", "right": 30}, {"field": "n", "right": "Di"}], "match": "any"}, "aD"),
        ({"where": {"age": 9}}, "BD"),
    ],
)
async def test_items_are_kept_by_conditions_on_their_fields(run, with_, kept):
    assert names(await run("filter", {"items": PEOPLE, **with_})) == kept


async def test_items_themselves_can_have_conditions(run):
    assert await run("filter", {"items": [1, 5, 9], "conditions": [{"operator": "greater", "right": 4}]}) == Output(
        [5, 9], ("some",)
    )


@pytest.mark.parametrize(
    ("by", "order"),
    [
        ([{"field": "age"}], "BDaC"),
        ([{"field": "age", "order": "falling"}], "aBDC"),
        ([{"field": "n"}], "BCDa"),
        ([{"field": "n", "ignoreCase": True}], "aBCD"),
        ([{"field": "age"}, {"field": "n", "order": "falling"}], "DBaC"),
        ([{"field": "age", "type": "text"}], "aBDC"),
    ],
)
async def test_a_list_is_put_in_order_with_null_last(run, by, order):
    assert names(await run("sort", {"items": PEOPLE, "by": by})) == order


async def test_a_list_without_fields_is_put_in_order_by_its_items(run):
    assert (await run("sort", {"items": [3, None, 1.5, 2]})).value == [1.5, 2, 3, None]


@pytest.mark.parametrize("items", [[1, "a"], [True, 1], [[1], [2]], [{}, {}]])
async def test_what_has_no_order_is_a_permanent_failure(run, items):
    with pytest.raises(NodeFailure, match=r"with.by\[0\]: cannot compare"):
        await run("sort", {"items": items})


@pytest.mark.parametrize(
    ("with_", "value", "port"),
    [
        ({"count": 2}, [0, 1], "some"),
        ({"count": 2, "skip": 4}, [4], "some"),
        ({"count": 2, "end": "last"}, [3, 4], "some"),
        ({"count": 2, "end": "last", "skip": 1}, [2, 3], "some"),
        ({"count": 9, "end": "last", "skip": 9}, [], "none"),
        ({"count": 0}, [], "none"),
    ],
)
async def test_a_list_is_cut_at_either_end(run, with_, value, port):
    assert await run("limit", {"items": [0, 1, 2, 3, 4], **with_}) == Output(value, (port,))


ORDERS = [{"id": 1, "lines": ["a", "b"], "who": {"n": "x"}}, {"id": 2, "lines": []}, {"id": 3}]


@pytest.mark.parametrize(
    ("with_", "value"),
    [
        ({"field": "lines"}, ["a", "b"]),
        ({"field": "lines", "as": "line"}, [{"line": "a"}, {"line": "b"}]),
        ({"field": "lines", "keep": ["who.n"]}, [{"who": {"n": "x"}, "lines": part} for part in "ab"]),
        ({"field": "lines", "keep": "all"}, [{"id": 1, "who": {"n": "x"}, "lines": part} for part in "ab"]),
        ({"size": 2}, [ORDERS[:2], ORDERS[2:]]),
    ],
)
async def test_a_list_is_taken_apart(run, with_, value):
    assert (await run("split", {"items": ORDERS, **with_})).value == value


async def test_a_field_that_is_no_list_is_a_permanent_failure_with_its_item(run):
    with pytest.raises(NodeFailure, match=r"with.items\[1\]: lines is no list"):
        await run("split", {"items": [{"lines": []}, {"lines": "ab"}], "field": "lines"})


@pytest.mark.parametrize(
    ("with_", "value"),
    [
        ({}, {"count": 4}),
        ({"values": [{"do": "sum", "field": "age"}]}, {"age": 48}),
        ({"values": [{"do": "avg", "field": "age", "as": "mean"}]}, {"mean": 16}),
        ({"values": [{"do": "min", "field": "age"}, {"do": "max", "field": "n"}]}, {"age": 9, "n": "ada"}),
        ({"values": [{"do": "count", "field": "age"}]}, {"age": 3}),
        ({"values": [{"do": "countUnique", "field": "age"}]}, {"age": 2}),
        ({"values": [{"do": "unique", "field": "age"}]}, {"age": [9, 30]}),
        ({"values": [{"do": "first", "field": "age"}, {"do": "last", "field": "n"}]}, {"age": 9, "n": "Di"}),
        (
            {"groupBy": ["age"], "values": [{"do": "collect", "field": "n"}]},
            [{"age": 9, "n": ["Bob", "Di"]}, {"age": 30, "n": ["ada"]}, {"age": None, "n": ["Cy"]}],
        ),
    ],
)
async def test_items_are_grouped_and_reckoned_up(run, with_, value):
    assert (await run("aggregate", {"items": PEOPLE, **with_})).value == value


@pytest.mark.parametrize(
    ("do", "value"), [("sum", 0), ("avg", None), ("min", None), ("max", None), ("first", None), ("collect", [])]
)
async def test_no_items_give_no_figures(run, do, value):
    assert (await run("aggregate", {"items": [], "values": [{"do": do, "field": "x"}]})).value == {"x": value}


@pytest.mark.parametrize(
    ("do", "values", "message"),
    [
        ("sum", [1, "2"], "has a value that is no number"),
        ("sum", [1e308, 1e308], "out of range"),
        ("min", [1, "a"], "cannot compare"),
    ],
)
async def test_figures_that_cannot_be_reckoned_are_a_permanent_failure_with_their_field(run, do, values, message):
    with pytest.raises(NodeFailure, match=rf"with.values\[0\]: .*{message}"):
        await run("aggregate", {"items": values, "values": [{"do": do}]})


LEFT = [{"id": 1, "k": "a"}, {"id": 2, "k": "b"}, {"id": 3}]
RIGHT = [{"k": "a", "v": 1}, {"k": "a", "v": 2}, {"k": "c", "v": 3}, {"k": None, "v": 4}]


@pytest.mark.parametrize(
    ("join", "rows"),
    [
        ("inner", [(1, 1), (1, 2)]),
        ("left", [(1, 1), (1, 2), (2, None), (3, None)]),
        ("outer", [(1, 1), (1, 2), (2, None), (3, None), (None, 3), (None, 4)]),
        ("anti", [(2, None), (3, None)]),
    ],
)
async def test_rows_are_joined_by_key_and_null_matches_nothing(run, join, rows):
    made = await run("merge", {"mode": "key", "values": [LEFT, RIGHT], "on": ["k"], "join": join})

    assert [(row.get("id"), row.get("v")) for row in made.value] == rows


@pytest.mark.parametrize(
    ("with_", "value"),
    [
        ({"mode": "append", "values": [[1], None, [2, 3]]}, [1, 2, 3]),
        ({"mode": "position", "values": [[{"a": 1}, {"a": 2}], [{"a": 9, "b": 1}]]}, [{"a": 9, "b": 1}, {"a": 2}]),
        ({"mode": "position", "values": [[{"a": 1}], [{"a": 9}]], "prefer": "first"}, [{"a": 1}]),
        ({"mode": "key", "values": [LEFT[:1], None], "on": ["k"], "join": "left"}, LEFT[:1]),
        ({"mode": "key", "values": [[{"x": 1}], [{"y": 1.0}]], "on": ["x"], "onRight": ["y"]}, [{"x": 1, "y": 1.0}]),
        ({"mode": "list", "values": [1, None, 2], "need": 2}, [1, 2]),
        ({"mode": "list", "values": [1, 2, 3], "take": 2}, [1, 2]),
    ],
)
async def test_branches_are_merged_as_asked(run, with_, value):
    assert (await run("merge", with_)).value == value


@pytest.mark.parametrize(
    ("with_", "message"),
    [
        ({"mode": "list", "values": [1, None], "need": "all"}, "with.need: 1 of 2 branches came, and 2 are needed"),
        ({"mode": "append", "values": [[1], 2]}, "with.values[1]: must be a list"),
        ({"mode": "position", "values": [[1]]}, "with.values[0][0]: must be an object"),
        ({"mode": "key", "values": [[]], "on": ["a"]}, "with: mode key joins two lists: give two values, and on"),
        ({"mode": "list", "on": ["a"]}, "with: on and onRight go with mode key only"),
        ({"mode": "key", "values": [[], []], "on": ["a"], "onRight": ["a", "b"]}, "with: on and onRight must have as"),
    ],
)
async def test_branches_that_cannot_be_merged_are_a_permanent_failure_with_the_field(run, with_, message):
    with pytest.raises(NodeFailure) as caught:
        await run("merge", with_)

    assert caught.value.error.type is ErrorType.PERMANENT
    assert caught.value.error.message.startswith(message)


@pytest.mark.parametrize(
    ("type_name", "with_", "message"),
    [
        ("filter", {"items": []}, "with: give exactly one of where, conditions and keep"),
        ("filter", {"items": [], "where": {"a..b": 1}}, "with.where.a..b"),
        ("sort", {"items": [], "by": [{"field": "a..b"}]}, "with.by[0].field: is no path"),
        ("sort", {"items": [], "by": [{"order": "up"}]}, "with.by[0].order: "),
        ("limit", {"items": [], "count": -1}, "with.count: "),
        ("split", {"items": []}, "with: give either field or size"),
        ("split", {"items": [], "size": 0}, "with.size: "),
        ("aggregate", {"items": [], "values": [{"do": "median"}]}, "with.values[0].do: "),
        ("aggregate", {"items": [], "groupBy": ["a.n", "b.n"]}, "with: two figures are called 'n'"),
        ("set", {"keep": ["a"]}, "with: keep and drop choose fields of an object: give from"),
        ("set", {"from": 5}, "with.from"),
        ("set", {"fields": [{"path": "", "value": 1}]}, "with.fields[0].path: "),
        ("merge", {"need": 0}, "with"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_when_they_are_saved(registry, type_name, with_, message):
    document = {"ropewalk": 1, "name": "t", "nodes": [{"id": "a", "type": type_name, "with": with_}]}

    with pytest.raises(InvalidDefinition) as refused:
        parse_definition(document, registry.infos())

    assert str(refused.value.problems[0]).removeprefix("nodes[0].").startswith(message)


async def test_what_multiplies_is_bounded(run, monkeypatch):
    monkeypatch.setattr(merging, "MOST_ROWS", 99)
    monkeypatch.setattr(lists, "MOST_ITEMS", 99)
    rows = [{"k": 1}] * 10

    with pytest.raises(NodeFailure, match="more than 99 rows"):
        await run("merge", {"mode": "key", "values": [rows, rows], "on": ["k"]})
    with pytest.raises(NodeFailure, match="more than 99 items"):
        await run("split", {"items": [{"a": [0] * 60}] * 2, "field": "a"})
