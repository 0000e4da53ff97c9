"""Shaping of items and lists."""

import json
from typing import Any

from ropewalk.importing.n8n.flows import braces, lookup, path
from ropewalk.importing.n8n.javascript import Untranslatable
from ropewalk.importing.n8n.reading import whole
from ropewalk.importing.n8n.table import Desk, Made, Out, translates

_KINDS = {"string": "text", "number": "number", "boolean": "boolean", "array": "list", "object": "object"}
_FIGURES = {
    "append": ("collect", "appended"), "average": ("avg", "average"), "count": ("count", "count"),
    "countUnique": ("countUnique", "unique_count"), "max": ("max", "max"), "min": ("min", "min"), "sum": ("sum", "sum"),
}  # fmt: skip
_JOINS = {"keepMatches": "inner", "keepNonMatches": "anti", "keepEverything": "outer", "enrichInput1": "left"}
_HASHES = {"MD5": "md5", "SHA1": "sha1", "SHA256": "sha256", "SHA384": "sha384", "SHA512": "sha512"}


@translates("set", "editFields")
def fields(desk: Desk) -> Made:
    if desk.get("mode") == "raw" or desk.get("jsonOutput") is not None:
        return _raw(desk)
    rows = _assignments(desk)
    asked: dict[str, Any] = {}
    item = desk.item
    kept = _kept(desk)
    if kept is not None:
        asked["from"] = braces(f"{item} ?? {{}}")
        asked |= kept
    is_dotted = desk.get("options", "dotNotation", default=True) is not False
    if is_dotted:
        asked["fields"] = rows
    else:
        asked["values"] = {row["path"]: row["value"] for row in rows}
    return Made([desk.node("set", asked)], {0: desk.each()})


def _assignments(desk: Desk) -> list[dict[str, Any]]:
    if found := desk.rows("assignments", "assignments"):
        return [_row(desk, row, str(row.get("type", "string"))) for row in found]
    if found := desk.rows("fields", "values"):
        return [_row(desk, row, str(row.get("type", "stringValue")).removesuffix("Value")) for row in found]
    old = desk.get("values", default={})
    return [
        _row(desk, row, kind)
        for kind, rows in (old.items() if isinstance(old, dict) else ())
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict)
    ]


def _row(desk: Desk, row: dict[str, Any], kind: str) -> dict[str, Any]:
    value = next((row[name] for name in ("value", f"{kind}Value") if name in row), None)
    if kind in ("array", "object") and isinstance(value, str) and not value.startswith("="):
        value = _json(value)
    made = {"path": str(row.get("name", "")), "value": desk.translator.value(value)}
    return {**made, "type": _KINDS[kind]} if kind in _KINDS else made


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise Untranslatable("a value that should be JSON is none") from None


def _kept(desk: Desk) -> dict[str, Any] | None:
    """Which of the fields that came in are kept: none, all, or some."""
    if desk.source.version < 3:
        return None if desk.get("keepOnlySet") is True else {}
    includes = desk.get("includeOtherFields")
    how = desk.get("include", default="all" if includes is True else "none")
    if includes is False or how == "none":
        return None
    named = desk.get("includeFields" if how == "selected" else "excludeFields", default="")
    names = [each.strip() for each in str(named).split(",") if each.strip()]
    return {"keep": names} if how == "selected" else {"drop": names} if how == "except" else {}


def _raw(desk: Desk) -> Made:
    given = desk.get("jsonOutput", default="{}")
    if not isinstance(given, str) or not given.startswith("="):
        value = desk.translator.value(_json(given) if isinstance(given, str) else given)
        return Made([desk.node("set", {"from": value if isinstance(value, dict) else {}})], {0: desk.each()})
    written = desk.translator.value(given)
    if written.startswith("{{") and written.count("{{") == 1 and written.endswith("}}"):
        return Made([desk.node("set", {"from": written})], {0: desk.each()})
    desk.differs("the JSON text is read after its expressions are filled in: what they give must be JSON")
    return Made([desk.node("json", {"value": written})], {0: desk.each()})


@translates("code")
def code(desk: Desk) -> Made:
    if not str(desk.get("language", default="javaScript")).startswith("python"):
        raise Untranslatable("it is code in JavaScript: write it anew as code.python, or as expressions")
    source = desk.get("pythonCode", default="")
    is_each = desk.get("mode") == "runOnceForEachItem"
    item = desk.item
    if is_each:
        given = {"_item": braces(f"{{json: {item}}}"), "_json": braces(item)}
    else:
        given = dict.fromkeys(("_items", "items"), braces(f"map({desk.flow.items()}, x => {{json: x}})"))
    desk.differs(
        "the code runs in a sandbox of its own: `_items` is a list of {json}; `_input` and attributes are not there"
    )
    made = desk.node("code.python", {"inputs": given, "code": desk.translator.value(str(source))}, per_item=is_each)
    return Made([made], {0: desk.each(".json") if is_each else _many_json(desk)})


def _many_json(desk: Desk) -> Out:
    out = desk.many()
    return Out(type(out.flow)(out.flow.value, True, ".json", desk.id), out.node)


@translates("function", "functionItem")
def function(desk: Desk) -> Made:
    raise Untranslatable("it is code in JavaScript: write it anew as code.python, or as expressions")


@translates("splitOut")
def split_out(desk: Desk) -> Made:
    return _split(desk, desk.get("fieldToSplitOut"), desk.get("options", "destinationFieldName"))


def _split(desk: Desk, field: Any, name: Any) -> Made:
    names = [each.strip() for each in str(field or "").split(",") if each.strip()]
    if len(names) != 1 or names[0].startswith("="):
        raise Untranslatable("it splits several fields, or one that an expression names")
    include = str(desk.get("include", default="noOtherFields"))
    if include == "selectedOtherFields":
        others = [each.strip() for each in str(desk.get("fieldsToInclude", default="")).split(",") if each.strip()]
        keep: Any = others
    else:
        keep = "all" if include == "allOtherFields" else "none"
    asked = {"items": braces(desk.flow.items()), "field": names[0], "keep": keep}
    if isinstance(name, str) and name and not name.startswith("="):
        asked["as"] = name
    elif keep == "none":
        desk.differs(f"elements that are no objects go on as they are, and not as {{{names[0]}: …}}")
    return Made([desk.node("split", asked, per_item=False)], {0: desk.many()})


@translates("aggregate")
def aggregate(desk: Desk) -> Made:
    items = desk.flow.items()
    if desk.get("aggregate") == "aggregateAllItemData":
        name = str(desk.get("destinationFieldName", default="data"))
        return Made([desk.node("set", {"values": {name: braces(items)}}, per_item=False)], {0: desk.one()})
    values: dict[str, Any] = {}
    for row in desk.rows("fieldsToAggregate", "fieldToAggregate"):
        field = str(row.get("fieldToAggregate", ""))
        given = row.get("outputFieldName") if row.get("renameField") is True else field.rpartition(".")[2]
        values[str(given)] = braces(desk.translator.checked(f"map({items}, x => {path('x', field)})"))
    if not values:
        raise Untranslatable("there are no fields to aggregate")
    return Made([desk.node("set", {"values": values}, per_item=False)], {0: desk.one()})


@translates("summarize")
def summarize(desk: Desk) -> Made:
    columns = []
    for row in desk.rows("fieldsToSummarize", "values"):
        do, field = str(row.get("aggregation", "count")), str(row.get("field", ""))
        if do not in _FIGURES:
            raise Untranslatable(f"the figure {do!r} has no equal here")
        figure, prefix = _FIGURES[do]
        columns.append({"do": figure, "field": field, "as": f"{prefix}_{field.replace('.', '_')}"})
    given = str(desk.get("fieldsToSplitBy", default=""))
    groups = [each.strip() for each in given.split(",") if each.strip()]
    asked = {"items": braces(desk.flow.items()), "groupBy": groups, "values": columns}
    return Made([desk.node("aggregate", asked, per_item=False)], {0: desk.many() if groups else desk.one()})


@translates("sort")
def sort(desk: Desk) -> Made:
    if desk.get("type", default="simple") != "simple":
        raise Untranslatable("it sorts by chance, or by code")
    keys = [
        {"field": str(row.get("fieldName", "")), "order": "falling" if row.get("order") == "descending" else "rising"}
        for row in desk.rows("sortFieldsUi", "sortField")
    ]
    asked = {"items": braces(desk.flow.items()), "by": keys}
    return Made([desk.node("sort", asked, per_item=False)], {0: desk.many()})


@translates("limit")
def limit(desk: Desk) -> Made:
    end = "last" if desk.get("keep") == "lastItems" else "first"
    asked = {"items": braces(desk.flow.items()), "count": whole(desk.get("maxItems"), 0, 10**6, 1), "end": end}
    return Made([desk.node("limit", asked, per_item=False)], {0: desk.many(port="some")})


@translates("removeDuplicates")
def dedupe(desk: Desk) -> Made:
    if desk.get("operation", default="removeDuplicateInputItems") != "removeDuplicateInputItems":
        raise Untranslatable("it remembers items of earlier executions: see `memory` of dedupe")
    asked: dict[str, Any] = {"items": braces(desk.flow.items())}
    match desk.get("compare", default="allFields"):
        case "selectedFields":
            names = str(desk.get("fieldsToCompare", default=""))
            asked["by"] = [each.strip() for each in names.split(",") if each.strip()]
        case "allFieldsExcept":
            raise Untranslatable("it compares all fields but some")
    return Made([desk.node("dedupe", asked, per_item=False)], {0: desk.many(port="some")})


@translates("itemLists")
def item_lists(desk: Desk) -> Made:
    operation = str(desk.get("operation", default="splitOutItems"))
    if operation == "splitOutItems":
        return _split(desk, desk.get("fieldToSplitOut"), desk.get("options", "destinationFieldName"))
    known = {"sort": sort, "limit": limit, "removeDuplicates": dedupe, "summarize": summarize}
    if operation in known:
        return known[operation](desk)
    raise Untranslatable(f"the operation {operation!r} has no equal here")


@translates("merge")
def merge(desk: Desk) -> Made:
    mode = str(desk.get("mode", default="append"))
    how = str(desk.get("combineBy", default=desk.get("combinationMode", default="combineByFields")))
    values = [braces(desk.translator.checked(flow.list_or_null())) for _, flow in sorted(desk.flows.items())]
    if mode == "chooseBranch":
        at = whole(str(desk.get("useDataOfInput", default=1)).isdigit() and int(desk.get("useDataOfInput", default=1)),
                   1, 10, 1) - 1  # fmt: skip
        return Made([desk.node("noop", {}, per_item=False)], {0: Out(desk.flows.get(at, desk.flow), desk.id)})
    if mode == "append":
        asked: dict[str, Any] = {"mode": "append", "values": values}
    elif mode in ("mergeByIndex",) or how in ("combineByPosition", "mergeByPosition"):
        asked = {"mode": "position", "values": values}
        desk.differs("items without a partner stay; n8n leaves them out unless it is told otherwise")
    elif mode in ("mergeByKey",) or how in ("combineByFields", "mergeByFields"):
        asked = {"mode": "key", "values": values, **_keys(desk)}
    else:
        raise Untranslatable(f"the mode {mode!r} ({how}) has no equal here")
    return Made([desk.node("merge", asked, per_item=False)], {0: desk.many()})


def _keys(desk: Desk) -> dict[str, Any]:
    join = _JOINS.get(str(desk.get("joinMode", default="keepMatches")))
    if join is None:
        raise Untranslatable("it adds to the items of the second input: exchange the two")
    given = str(desk.get("fieldsToMatchString", default=desk.get("propertyName1", default="")))
    names = [each.strip() for each in given.split(",") if each.strip()]
    if not names:
        pairs = desk.rows("mergeByFields", "values")
        names = [str(row.get("field1", "")) for row in pairs]
        others = [str(row.get("field2", "")) for row in pairs]
        return {"on": names, "onRight": others, "join": join}
    return {"on": names, "join": join}


@translates("markdown")
def markdown(desk: Desk) -> Made:
    if desk.get("mode", default="htmlToMarkdown") != "markdownToHtml":
        raise Untranslatable("it makes Markdown of HTML")
    made = desk.node("markdown.render", {"text": desk.text("markdown")})
    return Made([made], {0: desk.added(str(desk.get("destinationKey", default="data")))})


@translates("xml")
def xml(desk: Desk) -> Made:
    item = desk.item
    name = str(desk.get("dataPropertyName", default="data"))
    asked = {"value": braces(lookup(item, name))}
    if desk.get("mode", default="xmlToJson") != "xmlToJson":
        asked = {"do": "write", "value": braces(item)}
    desk.differs("how elements, attributes and texts are named may differ")
    return Made([desk.node("xml", asked)], {0: desk.each()})


@translates("crypto")
def crypto(desk: Desk) -> Made:
    kind = str(desk.get("type", default="MD5"))
    if desk.get("action", default="hash") != "hash" or kind not in _HASHES or desk.get("binaryData") is True:
        raise Untranslatable("see crypto.hmac and crypto.sign")
    encoding = "base64" if desk.get("encoding") == "base64" else "hex"
    asked = {"value": desk.text("value"), "algorithm": _HASHES[kind], "encoding": encoding}
    made = desk.node("crypto.hash", asked)
    return Made([made], {0: desk.added(str(desk.get("dataPropertyName", default="data")))})
