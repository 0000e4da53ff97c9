"""Anything that is shaped like a workflow of n8n becomes a workflow that passes, and a report of every node."""

import json
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ropewalk.core.definition import parse_definition
from ropewalk.importing.n8n import workflow_of
from ropewalk.importing.n8n.expressions import Translator
from ropewalk.importing.n8n.flows import Flow, Scope
from ropewalk.importing.n8n.javascript import Untranslatable
from ropewalk.importing.n8n.table import TABLE
from ropewalk.nodes.base import Registry

TYPES = Registry.builtin().infos()
NAMES = ["A", "B", "C d", "É", "if", "1", "x" * 80, "a.b", '"', "{{ x }}"]
WORDS = [
    "url", "method", "options", "rules", "values", "value", "conditions", "combinator", "operator", "type", "operation",
    "leftValue", "rightValue", "assignments", "name", "mode", "rule", "interval", "field", "fieldToSplitOut",
    "jsonBody", "sendBody", "sendQuery", "queryParameters", "parameters", "language", "pythonCode", "resume", "amount",
    "unit",
    "workflowId", "query", "table", "code", "include", "aggregate", "jsonOutput", "path", "httpMethod", "string",
    "value1", "value2", "expression", "fieldsToAggregate", "fieldToAggregate", "sortFieldsUi", "sortField", "maxItems",
    "output", "text", "content", "responseBody", "respondWith", "combineBy", "fieldsToMatchString", "fields",
]  # fmt: skip
TEXTS = [
    "={{ $json.a }}", "={{ $node['A'].json.b }}", "={{ $('B').item.json.c }}", "={{ $json.a + 1 }} x", "={{ broken",
    "={{ $json.map(x => x.y) }}", "raw", "python", "json", "{{ y }}", "executeQuery", "equals", "gt", "append", "",
    "\x00", "={{ }}", "=", "={{ $now.minus({days: 1}) }}", "return 1", "day", "seconds", "combine", "\ud800",
    "aggregateAllItemData",
]  # fmt: skip

texts = st.sampled_from(TEXTS) | st.sampled_from(WORDS) | st.text(max_size=8)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
keys = st.sampled_from(WORDS) | st.text(max_size=3)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5), max_leaves=12
)
kinds = st.sampled_from([*TABLE, "manualTrigger", "strange", "gmailTrigger", "lmChatOpenAi"])
nodes = st.fixed_dictionaries(
    {
        "name": st.sampled_from(NAMES) | st.text(max_size=5),
        "type": kinds.map("n8n-nodes-base.{}".format) | st.text(max_size=4),
        "parameters": st.dictionaries(st.sampled_from(WORDS), values, max_size=6) | values,
    },
    optional={
        "typeVersion": st.sampled_from([1, 2, 3, 4.2]) | scalars,
        "disabled": st.booleans(),
        "credentials": values,
        "onError": st.sampled_from(["continueErrorOutput", "continueRegularOutput"]) | scalars,
        "continueOnFail": st.booleans(),
        "retryOnFail": st.booleans(),
        "maxTries": scalars,
        "executeOnce": st.booleans(),
    },
)
targets = st.lists(
    st.fixed_dictionaries({"node": st.sampled_from(NAMES), "index": st.integers(0, 2) | scalars}) | scalars, max_size=3
)
outputs = st.dictionaries(
    st.sampled_from(["main", "main", "ai_tool", "ai_languageModel"]),
    st.lists(targets, max_size=3) | scalars,
    max_size=2,
)
documents = st.fixed_dictionaries(
    {
        "nodes": st.lists(nodes | scalars, max_size=8),
        "connections": st.dictionaries(st.sampled_from(NAMES), outputs | scalars, max_size=8),
    },
    optional={"name": st.text(max_size=5) | scalars, "settings": values},
)


@settings(max_examples=300, deadline=timedelta(seconds=5), suppress_health_check=list(HealthCheck))
@given(documents)
def test_whatever_is_shaped_like_a_workflow_gives_one_that_passes_and_a_report_of_each_node(document):
    found = workflow_of(document, TYPES)

    parse_definition(found.document, TYPES)
    json.dumps(found.report.as_json())
    ids = {node["id"] for node in found.document["nodes"]}
    became = [id_ for entry in found.report.entries for id_ in entry.ids]
    assert ids - {"nothing"} == set(became)
    assert sum(found.report.counts().values()) == len(found.report.entries)
    names = {node["name"] for node in document["nodes"] if isinstance(node, dict) and isinstance(node.get("type"), str)}
    assert len(found.report.entries) <= len(names)
    for entry in found.report.entries:
        assert entry.fidelity == "exact" or entry.reasons


@settings(max_examples=200, deadline=timedelta(seconds=5))
@given(st.text(alphabet="$json.x[0]'\"+-*/!=<>?:&|(){},=>`\\ab1 node", max_size=40))
def test_any_expression_is_translated_or_refused(source):
    translator = Translator(Scope("nodes.a.output", {"a": Flow("nodes.a.output")}))

    try:
        written = translator.value(f"={{{{ {source} }}}}")
    except Untranslatable:
        return

    assert isinstance(written, str)


@pytest.mark.parametrize("document", [None, 1, "x", [], [1, 2], {}, {"nodes": []}, {"nodes": {}, "connections": {}}])
def test_what_is_no_workflow_is_refused_with_what_was_expected(document):
    with pytest.raises(ValueError, match="expected a workflow as n8n exports it"):
        workflow_of(document, TYPES)
