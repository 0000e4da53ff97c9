"""`html.extract` and `markdown.render`."""

from typing import Any, Literal, Self, TypeAlias

from pydantic import Field, field_validator, model_validator

from ropewalk.nodes.base import About, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.html import Deadline, Element, parsed_html, sanitised
from ropewalk.nodes.inputs import Inputs
from ropewalk.nodes.selectors import LONGEST_SELECTOR, parse_selector, select

JSON: TypeAlias = Any

LONGEST_MARKDOWN = 128 * 1024
MOST_FIELDS = 100
MOST_FOUND = 100_000


def _a_selector(selector: str | None) -> str | None:
    if selector is not None:
        parse_selector(selector)
    return selector


class Extraction(Inputs):
    """One thing to take out of a page."""

    name: str = Field(min_length=1, max_length=200, description="What it is called in the output.", examples=["title"])
    selector: str | None = Field(
        None, max_length=LONGEST_SELECTOR, examples=["article > h1.title"],
        description="The CSS selector of the element; by default the page, or the element of `each`.",
    )  # fmt: skip
    get: Literal["text", "html", "attribute"] = Field(
        "text", description="Its text, its inner HTML (sanitised), or an attribute.", examples=["attribute"]
    )
    attribute: str | None = Field(None, max_length=200, description="Which attribute.", examples=["href"])
    all: bool = Field(False, description="A list of all that match; by default the first, or null.", examples=[True])

    _checked = field_validator("selector")(_a_selector)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.get == "attribute") != (self.attribute is not None):
            raise ValueError("attribute and get: attribute go together")
        return self


class HtmlExtract(NodeType):
    name = "html.extract"
    summary = "Takes texts, attributes and tables out of an HTML page by CSS selectors."
    about = About(
        title="Extract from HTML",
        category="data",
        icon="scan-text",
        keywords=("scrape", "html", "css", "selector", "page", "parse", "table", "crawl"),
        output={
            "type": ["object", "array"],
            "description": "An object with what was found; with `each` a list of such objects.",
        },
    )
    only_shapes = True
    has_rules = True

    class Parameters(Inputs):
        html: str = Field(description="The page.", examples=["{{ nodes.page.output.body }}"])
        extract: list[Extraction] = Field(
            min_length=1, max_length=MOST_FIELDS, description="What to take out.",
            examples=[[{"name": "title", "selector": "h1"}]],
        )  # fmt: skip
        each: str | None = Field(
            None, max_length=LONGEST_SELECTOR, examples=["table.prices tr"],
            description="The CSS selector of elements that each give an object; the selectors look inside them.",
        )  # fmt: skip

        _checked = field_validator("each")(_a_selector)

    def takes_long(self, parameters: Parameters) -> bool:
        return True

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        page = parsed_html(parameters.html, "with.html")
        deadline = Deadline("with.extract")
        if parameters.each is None:
            return Output(_extracted(page, parameters.extract, deadline))
        found = _found(page, parameters.each, deadline)
        return Output([_extracted(each, parameters.extract, deadline) for each in found])


def _extracted(within: Element, wanted: list[Extraction], deadline: Deadline) -> dict[str, JSON]:
    return {each.name: _one(within, each, deadline) for each in wanted}


def _one(within: Element, wanted: Extraction, deadline: Deadline) -> JSON:
    if wanted.selector is None:
        found = [within]
    else:
        found = _found(within, wanted.selector, deadline, None if wanted.all else 1)
    if wanted.all:
        return [_got(each, wanted) for each in found]
    return _got(found[0], wanted) if found else None


def _found(within: Element, selector: str, deadline: Deadline, most: int | None = None) -> list[Element]:
    found: list[Element] = []
    for element in select(within, parse_selector(selector), deadline):
        found.append(element)
        if len(found) == most:
            break
        if len(found) > MOST_FOUND:
            raise NodeFailure.permanent(f"with.extract: {selector[:64]!r} finds more than {MOST_FOUND:,} elements")
    return found


def _got(element: Element, wanted: Extraction) -> JSON:
    if wanted.get == "html":
        return sanitised(element)
    return element.text() if wanted.attribute is None else element.attributes.get(wanted.attribute.lower())


class MarkdownRender(NodeType):
    name = "markdown.render"
    summary = "Renders Markdown as HTML that is safe to show: known elements only, no scripts."
    about = About(
        title="Render Markdown",
        category="data",
        icon="file-type",
        keywords=("markdown", "html", "format", "commonmark", "text"),
        output={"type": "string", "description": "The HTML."},
    )
    only_shapes = True

    class Parameters(Inputs):
        text: str = Field(
            max_length=LONGEST_MARKDOWN, description="The Markdown (CommonMark, with tables).",
            examples=["# Order\n\n- **pen**: 2"],
        )  # fmt: skip
        raw_html: Literal["escape", "sanitise"] = Field(
            "escape", description="Whether HTML in the text is shown as text, or kept as far as it is harmless.",
            examples=["sanitise"],
        )  # fmt: skip
        breaks: bool = Field(False, description="Whether the end of a line starts a new one.", examples=[True])

    def takes_long(self, parameters: Parameters) -> bool:
        return True

    async def run(self, parameters: Parameters, context: NodeContext) -> Output:
        from markdown_it import MarkdownIt  # here, since other types of the module do without

        options = {"html": parameters.raw_html == "sanitise", "breaks": parameters.breaks}
        rendered = MarkdownIt("commonmark", options).enable(["table", "strikethrough"]).render(parameters.text)
        # Once more through the one gate for HTML: the library may let more through.
        return Output(sanitised(parsed_html(rendered, "with.text")))
