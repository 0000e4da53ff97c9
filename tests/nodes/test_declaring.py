"""Node types that are declared in a file: what is checked, and where it is said to be wrong."""

import re
from pathlib import Path

import pytest

from ropewalk.core.errors import ErrorType, InvalidDefinition
from ropewalk.modules import catalogue
from ropewalk.nodes.base import NodeFailure, Registry
from ropewalk.nodes.declaring import SCHEMA, load_node_types

from .conftest import context_of
from .credentials_at_hand import AtHand

CRM = """
nodeType: crm.update
summary: Updates a customer.
credential: http.bearer
parameters:
  required: [id]
  properties:
    id: { type: string, description: The customer., examples: [c-1] }
    tags: { type: array, items: { type: string }, description: Its tags., examples: [[new]] }
    mode: { type: string, default: soft, description: How., examples: [hard] }
request:
  method: PUT
  url: "SERVER/customers/{{ url_encode(input.id) }}"
  body: { tags: "{{ input.tags }}", mode: "{{ input.mode }}", keep: { always: true, never: "{{ input.none }}" } }
message: "the CRM says {{ item.body.why }}"
errors:
  - { status: [409, 423], type: TRANSIENT, retryAfter: "{{ item.body.after }}" }
  - { status: 404, type: PERMANENT, message: "no customer {{ input.id }}" }
  - { when: "{{ item.body.state == 'refused' }}", type: PERMANENT }
output: { value: { state: "{{ item.body.state }}", id: "{{ input.id }}" } }
retry: { maxAttempts: 5, delay: 2s }
"""


@pytest.fixture
def declared(tmp_path, site):
    """The type of a declaration, for a server at the site."""

    def load(text=CRM):
        file = tmp_path / "crm.yaml"
        file.write_text(text.replace("SERVER", site.url), encoding="utf-8")
        [found] = load_node_types(file)
        return found

    return load


@pytest.fixture
def update(declared, facilities):
    facilities.credentials = AtHand()
    facilities.credentials.add("crm", "http.bearer", token="t0ken-of-the-crm")

    async def run(**inputs):
        node_type = declared()
        return await node_type.run(node_type.accept(inputs), context_of(facilities, get_credentials=lambda: "crm"))

    return run


async def test_a_declared_type_calls_its_server(site, update):
    site.answer("/customers/a/b", text='{"state": "done"}', content_type="application/json")

    output = await update(id="a/b", tags=["x", "y"])

    assert output.value == {"state": "done", "id": "a/b"}
    assert site.body == '{"tags":["x","y"],"mode":"soft","keep":{"always":true}}'
    assert site.headers["authorization"] == "Bearer t0ken-of-the-crm"


@pytest.mark.parametrize(
    ("status", "body", "kind", "pause", "said"),
    [
        (423, '{"why": "locked", "after": 9}', ErrorType.TRANSIENT, 9.0, "crm.update: the CRM says locked"),
        (409, '{"why": "taken"}', ErrorType.TRANSIENT, None, "crm.update: the CRM says taken"),
        (404, "{}", ErrorType.PERMANENT, None, "crm.update: no customer c-1"),
        (200, '{"state": "refused", "why": "odd"}', ErrorType.PERMANENT, None, "crm.update: the CRM says odd"),
        (500, "<html>", ErrorType.TRANSIENT, None, "PUT http://"),
        (400, '{"why": {"a": 1}}', ErrorType.PERMANENT, None, 'crm.update: the CRM says {"a":1}'),
    ],
)
async def test_the_table_says_what_a_refusal_counts_as(site, update, status, body, kind, pause, said):
    site.answer("/customers/c-1", status=status, text=body, content_type="application/json")

    with pytest.raises(NodeFailure) as caught:
        await update(id="c-1")

    error = caught.value.error
    assert (error.type, error.retry_after, error.status) == (kind, pause, status)
    assert error.message.startswith(said)


def test_a_declared_type_is_described_like_any_other(declared):
    info = Registry([declared()]).infos()["crm.update"]

    assert info.about.title == "Crm update"
    assert info.parameters["properties"]["id"]["title"] == "Id"
    assert info.parameters["additionalProperties"] is False
    assert info.credentials == {"": ("http.bearer",)}
    assert info.retry == {"maxAttempts": 5, "delay": "2s"}


def test_a_file_may_declare_several(tmp_path: Path):
    one = "{ nodeType: crm.%s, summary: A., request: { url: https://a.example } }"
    (tmp_path / "all.yaml").write_text(f"nodeTypes: [{one % 'a'}, {one % 'b'}]", encoding="utf-8")

    known = catalogue([str(tmp_path / "all.yaml")]).types

    assert {"crm.a", "crm.b"} <= set(known.infos())


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("nodeType: crm.update", "nodeType: crm update", "crm.yaml:2:1: nodeType: "),
        ("nodeType: crm.update", "name: x", "declares no node type"),
        ("summary: Updates a customer.", "sumary: x", "crm.yaml:3:1: sumary: "),
        ("type: string, default", "type: strng, default", "crm.yaml:10:1: parameters.properties.mode.type: "),
        (
            "credential: http.bearer",
            "credential: http.barer",
            "crm.yaml:4:1: credential: there is no type",
        ),
        ("  method: PUT", "  method: TRACE", "crm.yaml:12:1: request.method: "),
        ("  method: PUT", "  metod: PUT", "crm.yaml:12:1: request.metod: "),
        ("url_encode(input.id)", "url_encode(input.id", "crm.yaml:13:1: request.url: "),
        ("url_encode(input.id)", "nodes.a.output", "crm.yaml:13:1: request.url: there is no 'nodes' here"),
        ("item.body.why", "vars.token", "crm.yaml:15:1: message: there is no 'vars' here; there are input, item"),
        ("status: [409, 423]", "status: [409, 6xx]", "crm.yaml:17:1: errors[0].status: is no status"),
        ("status: 404, type: PERMANENT", "type: PERMANENT", "crm.yaml:18:1: errors[1]: needs a status"),
        ("type: PERMANENT }", "type: NEVER }", "crm.yaml:19:1: errors[2].type: "),
        ("maxAttempts: 5", "maxAttempts: 0", "crm.yaml:21:1: retry: "),
        ("retry: {", "retry: [", "crm.yaml:2"),
    ],
)
def test_a_problem_is_told_with_its_place(declared, old, new, said):
    assert old in CRM

    with pytest.raises(InvalidDefinition) as caught:
        declared(CRM.replace(old, new))

    assert said in str(caught.value)


def test_all_problems_are_told_at_once(declared):
    with pytest.raises(InvalidDefinition) as caught:
        declared(CRM.replace("PUT", "TRACE").replace("item.body.why", "vars.token").replace("[409, 423]", "abc"))

    assert len(caught.value.problems) == 3


def test_a_file_that_is_not_there_is_said_so():
    with pytest.raises(InvalidDefinition, match=r"nowhere.yaml cannot be read: No such file"):
        load_node_types("nowhere.yaml")


async def test_what_parameters_make_of_the_request_is_checked_before_it_is_sent(site, update):
    with pytest.raises(NodeFailure) as caught:
        await update(id="c-1", tags="x")

    assert caught.value.error.message.startswith("with.tags: ")
    assert site.requests == []


def test_the_declaration_of_the_documentation_can_be_loaded(declared):
    page = (Path(__file__).parents[2] / "docs" / "node-types.md").read_text(encoding="utf-8")
    [example] = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)

    node_type = declared(example)

    assert node_type.target(node_type.accept({"id": "c-17"})) == "crm.update https://crm.example"


@pytest.mark.parametrize("field", sorted(SCHEMA["properties"]))
def test_every_field_of_a_declaration_is_documented(field):
    page = (Path(__file__).parents[2] / "docs" / "node-types.md").read_text(encoding="utf-8")

    assert f"`{field}`" in page
