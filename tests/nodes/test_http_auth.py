"""`http.request` with a credential, against servers that check it."""

import base64
import hashlib
import json
import re
from datetime import UTC, datetime
from types import SimpleNamespace
from urllib.parse import parse_qs

import pytest
from aiohttp import web
from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as AwsKey
from yarl import URL

from ropewalk.core.errors import ErrorType
from ropewalk.nodes.base import NodeFailure
from ropewalk.nodes.http.aws import signed
from ropewalk.nodes.http.call import Request
from ropewalk.nodes.http.digest import Challenge, answer, challenges_of
from ropewalk.nodes.http.payloads import json_body

from .conftest import context_of
from .credentials_at_hand import AtHand

SECRET = "s3cr3t-of-the-shop"


@pytest.fixture
def credentials(facilities):
    facilities.credentials = AtHand()
    return facilities.credentials


@pytest.fixture
def ask(registry, facilities, credentials, site):
    """Sends a request with a credential; what fails is told as a run tells it, without what was concealed."""

    async def send(name, path="/", **inputs):
        context = context_of(facilities, get_credentials=lambda: name)
        node_type = registry.get("http.request")
        try:
            output = await node_type.run(node_type.accept({"url": site.url + path, **inputs}), context)
            return context.masked_result(output).value
        except NodeFailure as failure:
            raise context.masked_failure(failure) from None

    return send


@pytest.fixture
def failed(ask):
    async def send(name, path="/", **inputs):
        with pytest.raises(NodeFailure) as caught:
            await ask(name, path, **inputs)
        return caught.value.error

    return send


@pytest.mark.parametrize(
    ("kind", "values", "header", "expected"),
    [
        ("http.basic", {"username": "ada", "password": SECRET}, "authorization",
         f"Basic {base64.b64encode(f'ada:{SECRET}'.encode()).decode()}"),
        ("http.bearer", {"token": SECRET}, "authorization", f"Bearer {SECRET}"),
        ("http.header", {"name": "X-Api-Key", "value": SECRET}, "x-api-key", SECRET),
    ],
)  # fmt: skip
async def test_a_secret_is_sent_where_its_type_says(site, ask, credentials, kind, values, header, expected):
    site.answer("/")
    credentials.add("shop", kind, **values)

    await ask("shop", headers={"Authorization": "the author's own"} if header == "authorization" else {})

    assert site.headers[header] == expected


async def test_a_secret_in_the_query_is_added_to_the_address(site, ask, credentials):
    site.answer("/")
    credentials.add("shop", "http.query", name="key", value="a b&c")

    await ask("shop", "/?page=2")

    assert parse_qs(site.query) == {"page": ["2"], "key": ["a b&c"]}


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("http.basic", {"username": "ada", "password": SECRET}),
        ("http.bearer", {"token": SECRET}),
        ("http.header", {"name": "X-Api-Key", "value": SECRET}),
        ("http.query", {"name": "key", "value": SECRET}),
        ("http.digest", {"username": "ada", "password": SECRET}),
        ("aws", {"accessKeyId": "AKIA", "secretAccessKey": SECRET, "service": "s3", "region": "eu-central-1"}),
    ],
)
async def test_a_credential_is_dropped_at_another_origin_and_repeated_by_no_answer(
    site, other_site, ask, failed, credentials, kind, values
):
    credentials.add("shop", kind, **values)

    async def echo(request):
        told = json.dumps([dict(request.headers), str(request.url)])
        return web.Response(status=200 if request.path == "/" else 403, text=told)

    site.answers["/"] = site.answers["/bad"] = echo
    site.redirect("/away", f"{other_site.url}/", 307)
    other_site.answer("/")

    output = await ask("shop")
    error = await failed("shop", "/bad")
    await ask("shop", "/away")

    assert SECRET not in json.dumps(output)
    assert SECRET not in f"{error.message}{error.detail}{error.body}"
    assert not {"authorization", "x-api-key", "x-amz-date"} & other_site.headers.keys()
    assert SECRET not in other_site.query


async def test_a_credential_is_sent_to_the_hosts_it_is_bound_to_alone(site, failed, credentials):
    credentials.add("shop", "http.bearer", hosts=["api.shop.example"], token=SECRET)

    error = await failed("shop")

    assert error.type is ErrorType.PERMANENT
    assert "is for api.shop.example, and not for 127.0.0.1" in error.message
    assert site.requests == []


async def test_a_credential_of_another_type_is_refused(site, failed, credentials):
    credentials.add("db", "postgres", password=SECRET)

    error = await failed("db")

    assert (error.type, site.requests) == (ErrorType.PERMANENT, [])


@pytest.mark.parametrize("value", ["a\r\nX-Other: b", "a\0"])
async def test_a_secret_that_would_be_two_headers_is_refused(site, failed, credentials, value):
    credentials.add("shop", "http.bearer", token=value)

    assert (await failed("shop")).type is ErrorType.PERMANENT
    assert site.requests == []


def digest_server(site, algorithm, qop='qop="auth,auth-int", ', more=""):
    """Has the site challenge, and check the answer by RFC 7616."""
    named = f"algorithm={algorithm}, " if algorithm else ""

    async def check(request):
        told = request.headers.get("Authorization", "")
        if not told.startswith("Digest "):
            challenge = f'Basic realm="x", Digest realm="shop", {named}{qop}nonce="n1", opaque="o"{more}'
            return web.Response(status=401, headers={"WWW-Authenticate": challenge})
        fields = {name: (quoted or plain) for name, quoted, plain in re.findall(r'(\w+)=(?:"([^"]*)"|([^,\s]*))', told)}
        kind = hashlib.sha256 if (algorithm or "").upper().startswith("SHA-256") else hashlib.md5

        def hashed(text):
            return kind(text.encode()).hexdigest()

        a1 = hashed(f"ada:shop:{SECRET}")
        if (algorithm or "").lower().endswith("-sess"):
            a1 = hashed(f"{a1}:n1:{fields['cnonce']}")
        a2 = hashed(f"{request.method}:{request.raw_path}")
        middle = f"n1:{fields['nc']}:{fields['cnonce']}:auth" if qop else "n1"
        right = hashed(f"{a1}:{middle}:{a2}") == fields["response"] and fields["opaque"] == "o"
        user = hashed("ada:shop") if more else "ada"
        return web.json_response({"ok": right and fields["username"] == user}, status=200 if right else 401)

    site.answers["/a b"] = check


@pytest.mark.parametrize(
    ("algorithm", "qop", "more"),
    [
        ("SHA-256", 'qop="auth", ', ""),
        ("sha-256", 'qop="auth,auth-int", ', ""),
        ("SHA-256-sess", 'qop="auth", ', ""),
        ("MD5", 'qop="auth", ', ""),
        ("MD5-sess", "qop=auth, ", ""),
        (None, "", ""),
        ("SHA-256", 'qop="auth", ', ", userhash=true"),
    ],
)
async def test_a_digest_challenge_is_answered_once(site, ask, credentials, algorithm, qop, more):
    digest_server(site, algorithm, qop, more)
    credentials.add("shop", "http.digest", username="ada", password=SECRET)

    output = await ask("shop", "/a b?x=1&y=%2F", method="POST", body={"a": 1})

    assert output["body"] == {"ok": True}
    assert [body for _, _, _, body in site.requests] == ['{"a":1}', '{"a":1}']


async def test_a_digest_that_is_refused_is_not_tried_again(site, failed, credentials):
    digest_server(site, "SHA-256")
    credentials.add("shop", "http.digest", username="ada", password="wrong-password")

    error = await failed("shop", "/a b")

    assert (error.type, error.status, len(site.requests)) == (ErrorType.PERMANENT, 401, 2)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Basic realm=x",
        'Digest realm="a", algorithm=SHA-512-256, nonce="n"',
        'Digest realm="a", qop="auth-int", nonce="n"',
        "Digest realm",
        'Digest nonce="' + '\\"' * 5000,
    ],
)
def test_a_challenge_that_cannot_be_answered_is_none(header):
    assert challenges_of(header) == []


def test_the_example_of_rfc_7616_is_answered_as_it_says():
    header = (
        'Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=SHA-256, '
        'nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"'
    )
    [challenge] = challenges_of(header)

    told = answer(
        challenge, "Mufasa", "Circle of Life", "GET", "/dir/index.html", 1,
        "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
    )  # fmt: skip

    assert isinstance(challenge, Challenge)
    assert 'response="753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"' in told


def token_server(site, *answers):
    """Answers each time a token is asked for with the next of these, and protects `/orders` with the last one given."""
    given = iter(answers)
    state = SimpleNamespace(asked=[], good=None)

    async def token(request):
        state.asked.append({name: values[0] for name, values in parse_qs(await request.text()).items()})
        status, body = next(given)
        state.good = body.get("access_token") if isinstance(body, dict) else None
        return web.json_response(body, status=status)

    async def orders(request):
        is_good = request.headers.get("Authorization") == f"Bearer {state.good}"
        return web.json_response({"ok": is_good}, status=200 if is_good else 401)

    site.answers |= {"/token": token, "/orders": orders}
    return state


CLIENT = {"clientId": "shop id", "clientSecret": SECRET, "scope": "orders.read", "audience": "https://api"}


async def test_a_client_gets_a_token_once_and_uses_it_again(site, ask, credentials):
    state = token_server(site, (200, {"access_token": "access-token-1", "token_type": "Bearer", "expires_in": 3600}))
    credentials.add("shop", "oauth2.client", tokenUrl=f"{site.url}/token", **CLIENT)

    first, second = await ask("shop", "/orders"), await ask("shop", "/orders")

    assert first["body"] == second["body"] == {"ok": True}
    grant = {"grant_type": "client_credentials", "scope": "orders.read", "audience": "https://api"}
    assert state.asked == [grant]
    login = next(headers["Authorization"] for _, path, headers, _ in site.requests if path == "/token")
    assert base64.b64decode(login.removeprefix("Basic ")) == f"shop+id:{SECRET}".encode()


async def test_a_client_can_send_its_secret_in_the_body(site, ask, credentials):
    state = token_server(site, (200, {"access_token": "access-token-1"}))
    credentials.add(
        "shop", "oauth2.client", tokenUrl=f"{site.url}/token", sendAs="body", clientId="a", clientSecret="b"
    )

    await ask("shop", "/orders")

    assert state.asked == [{"grant_type": "client_credentials", "client_id": "a", "client_secret": "b"}]


async def test_a_refresh_token_gets_an_access_token_and_takes_the_next_one(site, ask, credentials):
    state = token_server(site, (200, {"access_token": "access-token-1", "refresh_token": "r2", "expires_in": "60"}))
    credentials.add(
        "shop", "oauth2.refresh", tokenUrl=f"{site.url}/token", clientId="a", refreshToken="refresh-token-1"
    )

    assert (await ask("shop", "/orders"))["body"] == {"ok": True}
    assert state.asked == [{"grant_type": "refresh_token", "refresh_token": "refresh-token-1", "client_id": "a"}]
    assert (credentials.tokens["shop"].refresh, credentials.tokens["shop"].lifetime) == ("r2", 60.0)


async def test_a_token_that_is_refused_is_renewed_once(site, ask, credentials):
    state = token_server(site, (200, {"access_token": "access-token-1"}), (200, {"access_token": "access-token-2"}))
    credentials.add("shop", "oauth2.client", tokenUrl=f"{site.url}/token", **CLIENT)
    await ask("shop", "/orders")
    state.good = "access-token-2"

    output = await ask("shop", "/orders")

    assert (output["body"], credentials.renewed) == ({"ok": True}, 2)


@pytest.mark.parametrize(
    ("answered", "kind", "said"),
    [
        (
            (400, {"error": "invalid_client", "error_description": f"no {SECRET}"}),
            ErrorType.PERMANENT,
            "invalid_client",
        ),
        ((503, {}), ErrorType.TRANSIENT, "answered 503"),
        ((302, {}), ErrorType.PERMANENT, "answered 302"),
        ((200, {}), ErrorType.PERMANENT, "answered without a token"),
        ((200, ["x"]), ErrorType.PERMANENT, "answered without a token"),
        ((200, {"access_token": "a\r\nb"}), ErrorType.PERMANENT, "answered without a token"),
        ((200, {"access_token": "a", "token_type": "mac"}), ErrorType.PERMANENT, "a token of another kind"),
    ],
)
async def test_an_issuer_that_gives_no_token_is_told_of(site, failed, credentials, answered, kind, said):
    token_server(site, answered)
    credentials.add("shop", "oauth2.client", tokenUrl=f"{site.url}/token", **CLIENT)

    error = await failed("shop", "/orders")

    assert error.type is kind
    assert "'shop'" in error.message
    assert said in error.message
    assert SECRET not in f"{error.message}{error.detail}{error.body}"
    assert [path for _, path in site.asked] == ["/token"]


async def test_an_issuer_inside_is_not_asked(failed, credentials):
    credentials.add("shop", "oauth2.client", tokenUrl="http://169.254.169.254/token", **CLIENT)

    assert "never allowed" in (await failed("shop")).message


AWS = {"accessKeyId": "AKIDEXAMPLE", "secretAccessKey": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
STAMP = "20150830T123600Z"


def test_the_example_of_aws_is_signed_as_it_says():
    request = signed(Request("GET", URL("https://example.amazonaws.com/"), {}), AWS, "service", "us-east-1", STAMP)

    assert request.headers["Authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        "SignedHeaders=host;x-amz-date, "
        "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
    )


@pytest.mark.parametrize("service", ["s3", "lambda"])
@pytest.mark.parametrize(
    ("method", "url", "body"),
    [
        (
            "GET",
            "https://a.s3.amazonaws.com/a/b%20c/%C3%A9+x?list-type=2&prefix=a%2Fb c&empty=&x=1&x=0",
            None,
        ),
        ("POST", "https://lambda.eu-central-1.amazonaws.com/2015-03-31/functions/a%3Ab/invocations", {"a": "é"}),
        ("PUT", "https://127.0.0.1:9000/bucket/key~with-odd_chars.txt", {"a": 1}),
    ],
)
def test_a_request_is_signed_as_the_library_of_aws_signs_it(monkeypatch, service, method, url, body):
    key = {**AWS, "sessionToken": "the-session-token"}
    sent = None if body is None else json_body(body)
    headers = {} if sent is None else {"Content-Type": sent.type}

    ours = signed(Request(method, URL(url), headers, sent), key, service, "eu-central-1", STAMP)

    reference = AWSRequest(method, str(ours.url), headers=dict(headers), data=sent.whole() if sent else None)
    reference.headers["X-Amz-Security-Token"] = "the-session-token"
    theirs = AwsKey(key["accessKeyId"], key["secretAccessKey"], "the-session-token")
    signer = (S3SigV4Auth if service == "s3" else SigV4Auth)(theirs, service, "eu-central-1")
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda *_: datetime(2015, 8, 30, 12, 36, tzinfo=UTC))
    if service == "s3":
        reference.headers["X-Amz-Content-SHA256"] = ours.headers["X-Amz-Content-Sha256"]
    signer.add_auth(reference)
    assert ours.headers["Authorization"] == reference.headers["Authorization"]


async def test_a_host_that_does_not_tell_its_service_needs_the_credential_to(site, failed, credentials):
    credentials.add("aws", "aws", **AWS)

    assert "does not tell which service it is" in (await failed("aws")).message
