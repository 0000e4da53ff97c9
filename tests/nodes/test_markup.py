"""HTML that is read as browsers read it and written clean, and Markdown."""

import time

import pytest

from ropewalk.core.definition import parse_definition
from ropewalk.core.errors import InvalidDefinition
from ropewalk.nodes import html
from ropewalk.nodes.base import NodeFailure
from ropewalk.nodes.html import Deadline, parsed_html, sanitised
from ropewalk.nodes.selectors import parse_selector, select

PAGE = """<!doctype html><html><head><title>T &lt;b></title><script>if (a<b) "</div>"</script></head><body>
<ul class="x y"><li>a<li id=q data-n='1'>b &amp; c</ul><p>one<p>two<br>three <a href="/x?a=1&amp;b=2">go</a>
<table><tr><td>1<td>2<tr><td>3</table><div>a<span>b</span> < c</div><!-- <li>no</li> --></body>"""


def texts(selector, page=PAGE):
    return [each.text() for each in select(parsed_html(page, "html"), parse_selector(selector), Deadline("html"))]


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("li", ["a", "b & c"]),
        ("UL.x > li", ["a", "b & c"]),
        ("#q", ["b & c"]),
        ("[data-n]", ["b & c"]),
        ('a[href^="/x"]', ["go"]),
        ("a[href$='b=2'][href*=a]", ["go"]),
        ("ul[class~=y] li:last-child", ["b & c"]),
        ("td:nth-child(2)", ["2"]),
        ("tr:nth-child(odd) td", ["1", "2"]),
        ("tr + tr td", ["3"]),
        ("p ~ div span", ["b"]),
        ("li:not(#q)", ["a"]),
        ('li:contains("b & c")', ["b & c"]),
        ("span, a", ["go", "b"]),
        ("div", ["ab < c"]),
        ("script + *", []),
        ("article", []),
    ],
)
def test_selectors_find_what_browsers_would(selector, found):
    assert texts(selector) == found


@pytest.mark.parametrize(
    "selector", ["", ">", "a >", ",a", ":has(a)", "a[", "::before", "p:nth-child(0)", "a" + " a" * 30]
)
def test_what_is_no_selector_is_refused_when_it_is_saved(registry, selector):
    with_ = {"html": "", "extract": [{"name": "x", "selector": selector}]}
    document = {"ropewalk": 1, "name": "t", "nodes": [{"id": "a", "type": "html.extract", "with": with_}]}

    with pytest.raises(InvalidDefinition, match=r"extract\[0\].selector"):
        parse_definition(document, registry.infos())


async def test_texts_attributes_and_html_are_extracted(run):
    wanted = [
        {"name": "title", "selector": "title"},
        {"name": "items", "selector": "li", "all": True},
        {"name": "link", "selector": "a", "get": "attribute", "attribute": "href"},
        {"name": "inside", "selector": "div", "get": "html"},
        {"name": "none", "selector": "h1"},
    ]

    assert (await run("html.extract", {"html": PAGE, "extract": wanted})).value == {
        "title": "T <b>",
        "items": ["a", "b & c"],
        "link": "/x?a=1&b=2",
        "inside": "a<span>b</span> &lt; c",
        "none": None,
    }


@pytest.mark.parametrize(
    "unit",
    [
        "<a ",
        "<!--",
        "<!",
        '<a b="',
        "</a",
        "&",
        "<a b=c d",
        "<p><b>",
        "<?",
        "<![CDATA[",
        "<a" + " " * 50,
        "<",
        "<script>",
    ],
)
def test_no_text_takes_long(unit):
    began = time.thread_time()

    parsed_html(unit * (100_000 // len(unit)), "html").text()

    assert time.thread_time() - began < 5


def test_a_selector_with_many_ways_to_match_ends_soon():
    page = "<b>" * 150 + "x"

    assert texts("b " * 15 + "i", page) == []


async def test_a_page_is_bounded(run, monkeypatch):
    monkeypatch.setattr(html, "MOST_ELEMENTS", 10)

    for page, message in (("<b>" * 11, "more than 10 elements"), ("x" * (2**22 + 1), "longer than 4 Mi characters")):
        with pytest.raises(NodeFailure, match=message):
            await run("html.extract", {"html": page, "extract": [{"name": "x"}]})


@pytest.mark.parametrize(
    ("page", "clean"),
    [
        ("<p onclick=x>a<script>alert(1)</script></p>", "<p>a</p>"),
        ('<a href="java&#10;script:x">a</a>', "<a>a</a>"),
        ('<a href=" JAVASCRIPT:x">a</a>', "<a>a</a>"),
        ('<a href="data:text/html,x">a</a>', "<a>a</a>"),
        ('<a href="https://x.y/?a=1&b" title=\'"\'>a</a>', '<a href="https://x.y/?a=1&amp;b" title="&quot;">a</a>'),
        ("<img src=x onerror=alert(1)>", '<img src="x">'),
        ("<svg><style><img src=x onerror=1></style></svg>", ""),
        ("<textarea></p><img onerror=1></textarea>", "&lt;/p&gt;&lt;img onerror=1&gt;"),
        ("<b><iframe src=x>y</iframe>", "<b>y</b>"),
        ("a < b & c > d", "a &lt; b &amp; c &gt; d"),
        (
            "<math><mtext><table><mglyph><style><!--</style><img title='--><img src=1 onerror=1>'>",
            '<table><img title="--&gt;&lt;img src=1 onerror=1&gt;"></table>',
        ),
    ],
)  # fmt: skip
def test_sanitised_html_has_nothing_that_runs(page, clean):
    assert sanitised(parsed_html(page, "html")) == clean


@pytest.mark.parametrize(
    ("with_", "page"),
    [
        ({"text": "*a* `<b>`"}, "<p><em>a</em> <code>&lt;b&gt;</code></p>\n"),
        ({"text": "<b onclick=x>a</b>"}, "<p>&lt;b onclick=x&gt;a&lt;/b&gt;</p>\n"),
        ({"text": "<b onclick=x>a</b>", "rawHtml": "sanitise"}, "<p><b>a</b></p>\n"),
        ({"text": "<script>x</script>", "rawHtml": "sanitise"}, ""),
        ({"text": "a\nb", "breaks": True}, "<p>a<br>\nb</p>\n"),
        ({"text": "[a](javascript:x) [b](https://x.y)"}, '<p>[a](javascript:x) <a href="https://x.y">b</a></p>\n'),
    ],
)
async def test_markdown_is_rendered_safely(run, with_, page):
    assert (await run("markdown.render", with_)).value == page


async def test_tables_are_rendered(run):
    assert "<td>1</td>" in (await run("markdown.render", {"text": "|a|\n|-|\n|1|"})).value
