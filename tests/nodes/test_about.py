"""What palette and reference are made from: no built-in type lacks a piece of it."""

import pytest

from ropewalk.core.definition.authoring import certainty_of
from ropewalk.core.definition.node_type import CATEGORIES
from ropewalk.core.schema import check_schema, validate
from ropewalk.nodes.base import About, NodeType, Output, Registry
from ropewalk.nodes.builtin import BUILTIN
from ropewalk.nodes.describing import title_of

TYPES = sorted(BUILTIN)


class Odd(NodeType):
    name = "odd"

    async def run(self, parameters, context):
        return Output(None)


def fields_of(schema):
    """Every property of the parameters and of the models in them, with the schema to look references up in."""
    for place, model in (("", schema), *schema.get("$defs", {}).items()):
        for name, field in model.get("properties", {}).items():
            yield f"{place}.{name}".removeprefix("."), field


@pytest.mark.parametrize("name", TYPES)
def test_a_builtin_type_tells_what_a_palette_shows(registry, name):
    info = registry.infos()[name]

    assert info.summary.endswith(".")
    assert info.about.title
    assert info.about.category in CATEGORIES[:-1]
    assert info.about.icon
    assert info.about.keywords
    assert all(word == word.lower() for word in info.about.keywords)


@pytest.mark.parametrize("name", TYPES)
def test_a_builtin_type_describes_each_field_with_an_example_that_fits(registry, name):
    schema = registry.infos()[name].parameters

    for place, field in fields_of(schema):
        assert field["title"], place
        assert field.get("description", "").endswith((".", ":")), f"{place} has no description"
        assert field.get("examples"), f"{place} has no example"
        for example in field["examples"]:
            # References are looked up from the root of the schema.
            assert validate({**field, "$defs": schema.get("$defs", {})}, example, (), certainty_of) == [], place


@pytest.mark.parametrize("name", TYPES)
def test_a_builtin_type_documents_its_output_and_each_port(registry, name):
    info = registry.infos()[name]

    assert info.about.output
    assert check_schema(info.about.output) == []
    if info.ports is not None:
        assert tuple(info.about.ports) == info.ports
    else:
        assert info.about.ports
    assert all(told.endswith(".") for told in info.about.ports.values())


@pytest.mark.parametrize(
    ("about", "said"),
    [
        (About(category="fancy"), "odd: its category must be one of data"),
        (About(output={"type": "nonsense"}), "odd: its output cannot be described"),
    ],
)
def test_a_type_whose_description_makes_no_sense_is_refused(about, said):
    odd = Odd()
    odd.about = about

    with pytest.raises(ValueError, match=said):
        Registry([odd])


def test_a_type_that_says_nothing_has_a_title_made_of_its_name():
    assert Registry([Odd]).infos()["odd"].about == About(title="Odd")


@pytest.mark.parametrize(
    ("name", "title"),
    [("maxRedirects", "Max redirects"), ("http.request", "Http request"), ("first_name", "First name"), ("on", "On")],
)
def test_titles_are_made_of_names(name, title):
    assert title_of(name) == title
