"""Documents of n8n, what becomes of them, and that it does the same."""

import json
import time
from itertools import pairwise

import pytest

from ropewalk.core.definition import parse_definition
from ropewalk.documents import read_document
from ropewalk.importing.n8n import workflow_of
from ropewalk.importing.n8n.expressions import Translator
from ropewalk.importing.n8n.flows import Flow, Scope
from ropewalk.importing.n8n.javascript import Untranslatable
from ropewalk.importing.n8n.report import Fidelity
from ropewalk.local import LocalEngine
from ropewalk.nodes.base import Registry
from ropewalk.wiring import Settings, open_service

from .expected import FILES, FOLDER, TYPES, imported, report_file, workflow_file, written

SCOPE = Scope("nodes.a.output", {"A": Flow("nodes.a.output"), "L": Flow("nodes.l.output", True, ".body", "l")})


def test_there_are_twenty_documents():
    assert len(FILES) >= 20


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_document_becomes_the_workflow_and_the_report_that_are_kept(file):
    workflow, report = written(imported(file))

    assert workflow == workflow_file(file).read_text()
    assert report == report_file(file).read_text()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_a_document_becomes_passes_the_check_with_all_types_that_there_are(file):
    types = Registry.builtin().infos()

    parse_definition(read_document(workflow_file(file)).value, TYPES)
    parse_definition(workflow_of(json.loads(file.read_text()), types).document, types)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_report_is_about_every_node_and_says_why(file):
    found = imported(file)

    assert [entry.node for entry in found.report.entries] == [
        each["name"] for each in json.loads(file.read_text())["nodes"]
    ]
    assert all(entry.reasons or entry.fidelity is Fidelity.EXACT for entry in found.report.entries)
    stubs = [entry for entry in found.report.entries if entry.fidelity is Fidelity.STUB]
    kinds = {node["id"]: node["type"] for node in found.document["nodes"]}
    # A step that is left to be written stops the execution, and its source is there to read.
    assert all([kinds[id_] for id_ in entry.ids] == ["fail", "note"] for entry in stubs)


@pytest.fixture
async def local(tmp_path):
    settings = Settings(db=str(tmp_path / "test.db"), is_thrown_away=True)
    async with open_service(settings, Registry.builtin()) as service:
        yield LocalEngine(service)


@pytest.mark.parametrize(
    ("file", "input_", "output"),
    [
        ("08_code_python", None, {"squares": [36, 4, 16]}),
        ("11_respond", {"body": {"count": 11}}, {"price": 9.5, "by": "Answer a webhook"}),
        ("12_disabled_and_notes", {"y": "z", "k": 1}, {"y": "z", "k": 1, "x": "z"}),
    ],
)
async def test_an_imported_workflow_does_what_the_original_does(local, file, input_, output):
    document = read_document(FOLDER / f"{file}.yaml").value

    given = await (await local.start(document, input_)).result()

    if file == "11_respond":
        given = {"answer": {name: given["respond"]["body"][name] for name in output}}
    assert output in given.values()


async def test_items_go_their_own_ways(local):
    def node(name, kind, **parameters):
        return {"name": name, "type": f"n8n-nodes-base.{kind}", "typeVersion": 2.2, "parameters": parameters}

    row = {"leftValue": "={{ $json.n }}", "rightValue": 2, "operator": {"type": "number", "operation": "gt"}}
    document = {
        "name": "ways",
        "nodes": [
            node("T", "manualTrigger"),
            node("S", "splitOut", fieldToSplitOut="rows"),
            node("I", "if", conditions={"combinator": "and", "conditions": [row]}),
            node("Y", "aggregate", aggregate="aggregateAllItemData", destinationFieldName="more"),
            node("N", "aggregate", aggregate="aggregateAllItemData", destinationFieldName="less"),
        ],
        "connections": {
            "T": {"main": [[{"node": "S"}]]},
            "S": {"main": [[{"node": "I"}]]},
            "I": {"main": [[{"node": "Y"}], [{"node": "N"}]]},
        },
    }
    workflow = workflow_of(document, Registry.builtin().infos()).document

    given = await (await local.start(workflow, {"rows": [{"n": 1}, {"n": 3}, {"n": 2}]})).result()

    assert given == {"y": {"more": [{"n": 3}]}, "n": {"less": [{"n": 1}, {"n": 2}]}}


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("={{ $json.name }}", "{{ nodes.a.output.name }}"),
        ("={{ $json['a-b'].c[0] }}", '{{ nodes.a.output["a-b"].c[0] }}'),
        ("={{ $node['A'].json.y }}", "{{ nodes.a.output.y }}"),
        ("={{ $('A').item.json.y }}", "{{ nodes.a.output.y }}"),
        ("={{ $('L').last().json.y }}", "{{ nodes.l.output[-1].body.y }}"),
        ("=Hi {{ $json.n }}!", "Hi {{ nodes.a.output.n }}!"),
        ("={{ $json.a + ' ' + $json.b }}", '{{ (text(nodes.a.output.a) + " ") + text(nodes.a.output.b) }}'),
        ("={{ $json.x === 1 && !$json.y }}", "{{ (nodes.a.output.x == 1) and (not nodes.a.output.y) }}"),
        ("={{ $now.toFormat('dd.MM.yyyy') }}", '{{ date_format(now, "%d.%m.%Y") }}'),
        ("={{ $workflow.name }}", "{{ execution.workflow }}"),
        ("={{ $json.l.map(x => x.y) }}", "{{ map(nodes.a.output.l, x => x.y) }}"),
        ("={{ $json.t.replace(/\\s+/gi, ' ') }}", '{{ regex_replace(nodes.a.output.t, "(?i)\\\\s+", " ") }}'),
        ("={{ $json.t.match(/a[/](.)/)[1] }}", '{{ match(nodes.a.output.t, "a[/](.)")[1] }}'),
        ("={{ /^x/.test($json.t) }}", '{{ matches(nodes.a.output.t, "^x") }}'),
        ("={{ $json.a / $json.b / 2 }}", "{{ (nodes.a.output.a / nodes.a.output.b) / 2 }}"),
        ("{{ this is no expression }}", '{{ "{{" }} this is no expression }}'),
        ("plain", "plain"),
    ],
)
def test_an_expression_is_written_in_our_language(source, written):
    assert Translator(SCOPE).value(source) == written


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("={{ $json.x.split(/a/) }}", "the method split with a regular expression has no equal here"),
        ("={{ $json.x.match(/a(?=b)/) }}", "an expression cannot be said here"),
        ("={{ /a/ }}", "a regular expression stands by itself"),
        ("={{ $('Z').item.json.y }}", "'Z' does not come before this node"),
        ("={{ $binary.data }}", "$binary has no equal here"),
        ("={{ $json.x.foo() }}", "the method foo has no equal here"),
        ("={{ (() => { return 1 })() }}", "a function has several lines"),
        ("={{ $jmespath($json, 'a') }}", "JMESPath has no equal here"),
        ("={{ $json. }}", "ends too early"),
    ],
)
def test_an_expression_without_an_equal_is_refused_with_the_reason(source, reason):
    with pytest.raises(Untranslatable) as caught:
        Translator(SCOPE).value(source)

    assert reason in str(caught.value)


def test_a_workflow_of_thousands_of_nodes_is_imported_in_a_moment():
    names = [f"N{at}" for at in range(1_500)]
    set_ = {"assignments": {"assignments": [{"name": "x", "value": "={{ $('N0').item.json.x }}", "type": "string"}]}}
    nodes = [{"name": name, "type": "n8n-nodes-base.set", "typeVersion": 3.4, "parameters": set_} for name in names[1:]]
    start = {"name": "N0", "type": "n8n-nodes-base.manualTrigger", "parameters": {}}
    chain = {a: {"main": [[{"node": b}]]} for a, b in pairwise(names)}

    began = time.process_time()
    found = workflow_of({"name": "long", "nodes": [start, *nodes], "connections": chain}, TYPES)

    assert found.report.counts()["exact"] == 1_500
    assert time.process_time() - began < 20
