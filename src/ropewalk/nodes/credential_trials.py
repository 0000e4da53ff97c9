"""How a credential is tried: the smallest question to its counterpart that only a good one is answered.

A trial changes nothing at the counterpart. It gives what it saw, or fails as a node would.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from ropewalk.nodes.context import NodeContext
from ropewalk.nodes.credentials import Credential
from ropewalk.nodes.failure import NodeFailure
from ropewalk.nodes.values import Output

PATIENCE: Final = 15.0
"""How long a trial may take (s)."""
LONGEST_ANSWER: Final = 65_536

Trial = Callable[[Credential, NodeContext], Awaitable[str]]
Json = Mapping[str, Any]


class Question(Struct, frozen=True):
    """One GET request: where, and what it has in its headers."""

    url: str
    headers: Mapping[str, str] = {}


async def tried(credential: Credential, context: NodeContext) -> str:
    """What came of the trial of a credential; NodeFailure if its counterpart does not take it, in time."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await TRIALS[credential.type](credential, context)
    except TimeoutError:
        raise NodeFailure.timeout(f"the counterpart did not answer in {PATIENCE:.0f}s") from None


def _asks(question: Callable[[Json], Question], *, says_ok: bool = False) -> Trial:
    """A trial by one request, which a 2xx answers; `says_ok`: its JSON says `"ok": true` besides."""

    async def trial(credential: Credential, context: NodeContext) -> str:
        asked = question(credential.values)
        status, body = await _asked(asked, credential, context)
        place = asked.url.partition("?")[0]
        if not 200 <= status < 300 or (says_ok and b'"ok":true' not in body.replace(b" ", b"")):
            raise NodeFailure.permanent(f"{context.masked(place)} answers {status} and does not take the credential")
        return f"{context.masked(place)} answers {status}"

    return trial


async def _asked(asked: Question, credential: Credential, context: NodeContext) -> tuple[int, bytes]:
    import aiohttp  # here, since most processes try no credential

    credential.require_host(urlsplit(asked.url).hostname or "")
    try:
        request = context.http.get(asked.url, headers=dict(asked.headers), allow_redirects=False)
        async with request as response:
            return response.status, await response.content.read(LONGEST_ANSWER)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        host = urlsplit(asked.url).hostname
        raise NodeFailure.transient(f"{host} cannot be reached: {context.masked(str(error))}") from None


async def _requested(credential: Credential, context: NodeContext) -> str:
    """A trial by `http.request` itself, which logs in as it does for nodes."""
    return await _answered(_test_url(credential), context)


async def _answered(url: str, context: NodeContext) -> str:
    from ropewalk.nodes.http.request import HttpRequest  # here, as in `_asked`

    node = HttpRequest()
    result = await node.run(node.accept({"url": url, "responseType": "text"}), context)
    assert isinstance(result, Output), "a request waits for nothing"
    return f"{url.partition('?')[0]} answers {result.value['status']}"


def _test_url(credential: Credential) -> str:
    url = credential.values.get("testUrl")
    if not url:
        raise NodeFailure.permanent("set its field testUrl: an address that answers a good credential with 2xx")
    return str(url)


async def _with_token(credential: Credential, context: NodeContext) -> str:
    """A trial that gets a token, and asks the address with it if one is set."""
    from ropewalk.nodes.http.oauth2 import new_token  # here, as in `_asked`

    if credential.values.get("testUrl"):
        return await _requested(credential, context)
    await context.token(credential, lambda: new_token(credential, context))
    return f"{credential.values['tokenUrl']} gives a token"


async def _aws(credential: Credential, context: NodeContext) -> str:
    region, endpoint = credential.values["region"], credential.values.get("endpoint")
    identity = f"https://sts.{region}.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15"
    return await _answered(endpoint or identity, context)


def _bearer(path: str, field: str = "token", **more: str) -> Callable[[Json], Question]:
    """A question at the service's own address with a bearer token."""

    def question(values: Json) -> Question:
        headers = {"Authorization": f"Bearer {values[field]}", "User-Agent": "ropewalk", **more}
        return Question(values["baseUrl"].rstrip("/") + path, headers)

    return question


async def _smtp(credential: Credential, context: NodeContext) -> str:
    import aiosmtplib  # here, as in `_asked`

    from ropewalk.nodes.smtp import Encryption

    values = credential.values
    credential.require_host(values["host"])
    connection = await context.connect(values["host"], values["port"])
    try:
        async with aiosmtplib.SMTP(
            hostname=values["host"], sock=connection, username=values.get("username"),
            password=values.get("password"), local_hostname="localhost",
            use_tls=values["tls"] == Encryption.TLS, start_tls=values["tls"] == Encryption.STARTTLS, timeout=PATIENCE,
        ) as client:  # fmt: skip
            await client.noop()
    except (aiosmtplib.SMTPException, OSError, ValueError) as error:
        raise NodeFailure.permanent(f"the mail server refuses: {context.masked(str(error))}") from None
    finally:
        connection.close()
    return f"{values['host']}:{values['port']} lets it in"


async def _database(credential: Credential, context: NodeContext) -> str:
    from ropewalk.nodes.databases.connection import Terms  # here, as in `_asked`
    from ropewalk.nodes.databases.pools import Databases

    pool = context.facilities.opened(Databases).pool(context, credential)
    async with pool.transaction(Terms(PATIENCE, is_read_only=True)):
        return "the database lets it in"


TRIALS: Final[Mapping[str, Trial]] = {
    **dict.fromkeys(("http.basic", "http.bearer", "http.header", "http.query", "http.digest"), _requested),
    **dict.fromkeys(("oauth2.client", "oauth2.refresh", "google"), _with_token),
    "aws": _aws,
    **dict.fromkeys(("postgres", "mysql", "sqlite"), _database),
    "smtp": _smtp,
    "openai": _asks(_bearer("/models", "apiKey")),
    "anthropic": _asks(lambda v: Question(
        f"{v['baseUrl'].rstrip('/')}/v1/models", {"x-api-key": v["apiKey"], "anthropic-version": "2023-06-01"}
    )),
    "slack": _asks(_bearer("/auth.test"), says_ok=True),
    "github": _asks(_bearer("/user")),
    "stripe": _asks(_bearer("/v1/balance", "apiKey")),
    "telegram": _asks(lambda v: Question(f"{v['baseUrl'].rstrip('/')}/bot{v['token']}/getMe"), says_ok=True),
    "discord": _asks(
        lambda v: Question(f"{v['baseUrl'].rstrip('/')}/users/@me", {"Authorization": f"Bot {v['token']}"}),
    ),
    "notion": _asks(_bearer("/v1/users/me", **{"Notion-Version": "2022-06-28"})),
    "airtable": _asks(_bearer("/v0/meta/whoami")),
}  # fmt: skip
"""How credentials of each type are tried; a type that is missing here cannot be."""
