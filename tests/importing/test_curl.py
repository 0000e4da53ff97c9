"""curl commands as nodes."""

import json

import pytest

from ropewalk.core.definition import parse_definition
from ropewalk.importing.curl import node_of
from ropewalk.importing.shell import words_of
from ropewalk.nodes.base import Registry

URL = "https://shop.example/orders"
SECRET = "s3cr3t-Value"


@pytest.fixture(scope="module")
def infos():
    return Registry.builtin().infos()


def with_of(command):
    return node_of(command).node["with"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", {}),
        ("-X DELETE", {"method": "DELETE"}),
        ("-XDELETE", {"method": "DELETE"}),
        ("--request=put", {"method": "PUT"}),
        ("-I", {"method": "HEAD"}),
        ("-H 'X-Shop: a: b'", {"headers": {"X-Shop": "a: b"}}),
        ("-H 'X-A: 1' -H 'x-a: 2'", {"headers": {"X-A": "1, 2"}}),
        ("-A robot -e https://a.example/", {"headers": {"User-Agent": "robot", "Referer": "https://a.example/"}}),
        ("-d a=1 -d b=x%20y", {"method": "POST", "form": {"a": "1", "b": "x y"}}),
        ("-d a=1 -d a=2", {"method": "POST", "form": {"a": ["1", "2"]}}),
        ("--data-urlencode 'a=x y&z'", {"method": "POST", "form": {"a": "x y&z"}}),
        ("-d 'no form'", {"method": "POST", "text": "no form",
                          "headers": {"Content-Type": "application/x-www-form-urlencoded"}}),
        ("-H 'Content-Type: application/json' -d '{\"a\": [1, null]}'", {"method": "POST", "body": {"a": [1, None]}}),
        ("-H 'content-type: application/vnd.shop+json' -d '[1]'",
         {"method": "POST", "body": [1], "headers": {"content-type": "application/vnd.shop+json"}}),
        ("-H 'Content-Type: application/json' -d '{\"n\": 12345678901234567890}'",
         {"method": "POST", "text": '{"n": 12345678901234567890}', "headers": {"Content-Type": "application/json"}}),
        ("-H 'Content-Type: text/xml' -d '<a/>'",
         {"method": "POST", "text": "<a/>", "headers": {"Content-Type": "text/xml"}}),
        ("--json '{\"a\": 1}'", {"method": "POST", "body": {"a": 1}, "headers": {"Accept": "application/json"}}),
        ("-G -d q=x%20y -d tag=1 -d tag=2", {"query": {"q": "x y", "tag": ["1", "2"]}}),
        ("--url-query page=2", {"query": {"page": "2"}}),
        ("-F title=hi -F 'n=1;type=text/plain'", {"method": "POST", "multipart": {"title": "hi", "n": "1"}}),
        ("-F photo=@a.png", {"method": "POST", "multipart": {"photo": "{{ input.photo }}"}}),
        ("--data-binary @a.bin", {"method": "POST", "file": "{{ input.file }}"}),
        ("-T a.bin", {"method": "PUT", "file": "{{ input.file }}"}),
        ("-sSLf --compressed --http2 --connect-timeout 5", {}),
        ("-m 2.5 --max-redirs 3", {"timeout": 2.5, "maxRedirects": 3}),
        ("-o invoice.pdf", {"responseType": "file"}),
        ("-d 't={{ input.x }}'", {"method": "POST", "form": {"t": '{{ "{{" }} input.x }}'}}),
    ],
)  # fmt: skip
def test_a_command_becomes_the_parameters_that_send_the_same(infos, options, expected):
    node = node_of(f"curl {options} '{URL}'").node

    assert node["with"] == {"url": URL, **expected}
    assert parse_definition({"ropewalk": 1, "name": "a", "nodes": [node]}, infos)


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (f"curl -u ada:{SECRET} {URL}", "http.basic"),
        (f"curl --digest -u ada:{SECRET} {URL}", "http.digest"),
        (f"curl -uada:{SECRET} {URL}", "http.basic"),
        (f"curl https://ada:{SECRET}@shop.example/orders", "http.basic"),
        (f"curl --oauth2-bearer {SECRET} {URL}", "http.bearer"),
        (f"curl -H 'Authorization: Bearer {SECRET}' {URL}", "http.bearer"),
        (f"curl -H 'authorization: token {SECRET}' {URL}", "http.header"),
        (f"curl -H 'X-Api-Key: {SECRET}' {URL}", "http.header"),
        (f"curl -H 'Private-Token: {SECRET}' {URL}", "http.header"),
        (f"curl -b 'session={SECRET}' {URL}", "http.header"),
        (f"curl '{URL}?api_key={SECRET}&page=2'", "http.query"),
        (f"curl -G -d access_token={SECRET} {URL}", "http.query"),
        (f"curl --aws-sigv4 aws:amz:eu-central-1:s3 -u AKIA:{SECRET} {URL}", "aws"),
    ],
)
def test_no_secret_gets_into_the_node_or_the_notes(command, kind):
    found = node_of(command)

    assert SECRET not in json.dumps([found.node, found.notes])
    assert found.node["credentials"] == "CHANGE-ME"
    assert f"make a credential of the type {kind}," in found.notes[0]


@pytest.mark.parametrize(
    "command",
    [
        f"curl -d password={SECRET} {URL}",
        f'curl --json \'{{"auth": {{"client_secret": "{SECRET}"}}}}\' {URL}',
        f"curl -F api_key={SECRET} {URL}",
        f"curl -u a:b -H 'X-Auth-Token: {SECRET}' {URL}",
        f"curl {URL} https://ada:{SECRET}@b.example",
    ],
)
def test_secrets_without_a_credential_of_their_own_are_left_out_and_noted(command):
    found = node_of(command)

    assert SECRET not in json.dumps([found.node, found.notes])
    assert any("was left out" in note for note in found.notes)


def test_what_the_request_makes_itself_and_what_is_not_known_is_noted():
    found = node_of(f"curl --fancy -H 'Host: other' -H 'Accept-Encoding: br' --retry 3 {URL}")

    assert found.node["with"] == {"url": URL}
    assert [note.split(" was left out")[0] for note in found.notes] == [
        "--fancy is not known and",
        "--retry",
        "the header Host",
        "the header Accept-Encoding",
    ]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("curl", "names no address"),
        ("", "names no address"),
        (f"curl -k {URL}", "--insecure cannot be had: certificates are always checked"),
        (f"curl -sk {URL}", "--insecure cannot be had"),
        (f"curl -x http://proxy {URL}", "--proxy cannot be had"),
        (f"curl --cert a.pem {URL}", "--cert cannot be had"),
        (f"curl -X TRACE {URL}", "the method 'TRACE' cannot be had"),
        ("curl ftp://a.example", "must begin with http"),
        (f"curl -d a=1 -F b=2 {URL}", "-d and -F cannot stand together"),
        (f"curl {URL} -H", "--header needs a value"),
        (f"curl {URL} -m soon", "--max-time needs a number"),
        (f"curl '{URL}", "ends before its '"),
        (f"curl {URL} | jq .", "has '|' outside quotes"),
        (f"curl {URL} && rm x", "has '&' outside quotes"),
        (f"curl {URL} --next {URL}", "--next cannot be had"),
    ],
)
def test_a_command_that_cannot_be_a_node_is_refused_with_the_reason(command, said):
    with pytest.raises(ValueError, match=said.replace("|", r"\|")):
        node_of(command)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a 'b c' \"d e\"", ["a", "b c", "d e"]),
        ("a \\\n  b", ["a", "b"]),
        (r"a\ b 'c'\''d'", ["a b", "c'd"]),
        (r'"a\"b\n$x"', [r'a"b\n$x']),
        (r"$'it\'s\x21\u00e9\n'", ["it's!é\n"]),
        ("", []),
        ("''", [""]),
    ],
)
def test_words_are_those_of_a_shell(text, words):
    assert words_of(text) == words
