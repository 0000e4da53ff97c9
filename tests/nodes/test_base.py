"""The registry, and what definitions are told about node types."""

from importlib.metadata import EntryPoint

import pytest
from pydantic import BaseModel

from ropewalk.core.schema import check_schema, validate
from ropewalk.nodes.base import ENTRY_POINTS, Inputs, NodeType, Output, Registry

BUILTIN = [
    *("aggregate", "approval"),
    "code.python",
    *("crypto.hash", "crypto.hmac", "crypto.sign", "crypto.verify", "csv.parse"),
    *("csv.write", "datetime", "dedupe", "delay", "email.send", "event.emit", "execution.cancel"),
    *("execution.signal", "fail", "filter", "html.extract", "http.request"),
    *("if", "json", "kv.delete", "kv.get", "kv.increment", "kv.set", "limit", "log", "markdown.render", "merge"),
    *("noop", "note", "python", "set", "sort", "split", "subworkflow", "switch", "text.template", "wait"),
    *("workflow.start", "xml"),
]


class Greet(NodeType):
    name = "greet"
    summary = "Says hello."
    ports = ("loud", "soft")

    class Parameters(Inputs):
        title: str
        first_name: str = "you"

    async def run(self, parameters, context):
        return Output(f"{parameters.title} {parameters.first_name}", ("loud",))


class Shadow(Greet):
    name = "noop"


class ErrorPort(Greet):
    name = "error_port"
    ports = ("error",)


class BadName(Greet):
    name = "no spaces, please"


NOT_A_TYPE = BaseModel


def entry(name, value):
    return EntryPoint(name, value, ENTRY_POINTS)


def test_the_builtin_types_are_there(registry):
    known = list(registry.infos())
    assert set(BUILTIN) <= set(known)
    assert all(registry.get(name).summary for name in known)
    assert [registry.get(name).name for name in known] == known
    assert registry.get("nonsense") is None


@pytest.mark.parametrize("name", BUILTIN)
def test_every_schema_is_one_the_core_accepts(registry, name):
    schema = registry.infos()[name].parameters

    assert check_schema(schema) == []
    assert schema["additionalProperties"] is False
    assert "title" not in schema


def test_waits_say_that_they_wait(registry):
    waits = [name for name, info in registry.infos().items() if info.is_wait]

    assert sorted(waits) == ["approval", "delay", "subworkflow", "wait"]


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("http.request", {"url": "https://shop.example", "method": "POST", "timeout": "30s", "expectStatus": [200]}),
        ("email.send", {"to": "ada@example.org"}),
        ("email.send", {"to": ["ada@example.org"], "from": "a@example.org", "smtp": {"host": "m", "tls": "none"}}),
        ("switch", {"value": 1, "cases": {"one": 1}}),
        ("switch", {"value": 1, "cases": [{"port": "one", "equals": 1}]}),
        ("delay", {"for": 5}),
        ("wait", {"until": "2027-01-15T08:00:00Z"}),
    ],
)
def test_what_a_type_accepts_its_schema_accepts(registry, name, inputs):
    registry.get(name).accept(inputs)

    assert validate(registry.infos()[name].parameters, inputs) == []


def test_the_titles_of_fields_are_made_of_their_names_and_a_property_called_title_stays():
    schema = Registry([Greet]).infos()["greet"].parameters

    assert schema["properties"] == {
        "title": {"title": "Title", "type": "string"},
        "firstName": {"title": "First name", "default": "you", "type": "string"},
    }


@pytest.mark.parametrize("node_type", [Greet, Greet()])
async def test_a_type_is_registered_as_class_or_instance(node_type):
    registry = Registry()
    registry.register(node_type)

    assert registry.get("greet").accept({"title": "Dr"}).first_name == "you"


@pytest.mark.parametrize("node_type", [Shadow, ErrorPort, BadName])
def test_a_type_that_would_confuse_is_refused(node_type):
    registry = Registry.builtin()

    with pytest.raises(ValueError):
        registry.register(node_type)

    assert list(registry.infos()) == list(Registry.builtin().infos())


def test_a_package_that_cannot_be_loaded_is_reported_and_leaves_the_others_alone(caplog):
    registry = Registry.builtin()

    problems = registry.load_entry_points(
        [
            entry("missing", "no.such.module:Type"),
            entry("shadow", "tests.nodes.test_base:Shadow"),
            entry("model", "tests.nodes.test_base:NOT_A_TYPE"),
            entry("leaves", "tests.nodes.leaving"),
            entry("greet", "tests.nodes.test_base:Greet"),
        ]
    )

    assert [problem.name for problem in problems] == ["leaves", "missing", "model", "shadow"]
    assert "no" in problems[1].reason
    assert "there is a node type 'noop' already" in problems[3].reason
    assert registry.get("greet") is not None
    assert registry.missing == {problem.name: problem.reason for problem in problems}
    assert caplog.records == []


def test_what_could_not_be_loaded_is_logged_by_a_process_that_executes(caplog):
    registry = Registry()
    registry.load_entry_points([entry("missing", "no.such.module:Type")])

    registry.tell_of_missing()

    assert [record.getMessage() for record in caplog.records] == [
        "the node type missing (no.such.module:Type) cannot be loaded: ModuleNotFoundError: No module named 'no'"
    ]


def test_installed_packages_are_looked_up():
    assert Registry().load_entry_points() == ()


@pytest.mark.parametrize(
    ("name", "parameters", "taken", "wrong"),
    [
        ("if", {}, ("true",), None),
        ("if", {}, ("maybe",), "if has no port 'maybe'; it has true, false"),
        ("if", {}, ("true", "false"), "if takes exactly one of its ports: true, false"),
        ("if", {}, (), "if takes exactly one of its ports: true, false"),
        ("switch", {"cases": {"a": 1}}, ("a",), None),
        ("switch", {"cases": {"a": 1}}, ("b",), "switch has no port 'b'; it has a, default"),
        ("switch", {"cases": [{"port": "{{ input }}", "equals": 1}]}, ("b",), None),
        ("noop", {}, ("b",), "noop has no port 'b'; it has none"),
        ("approval", {}, ("expired",), None),
        ("approval", {}, ("arrived",), "approval has no port 'arrived'; it has approved, rejected, expired"),
        ("wait", {}, ("arrived",), None),
        ("python", {}, ("left", "right"), None),
    ],
)
def test_a_type_says_which_ports_an_output_cannot_take(name, parameters, taken, wrong):
    assert Registry.builtin().get(name).wrong_ports(parameters, taken) == wrong
