"""Services as their presets know them: what each is asked, and how it answers."""

import base64
import json
from typing import Any
from urllib.parse import parse_qs

from aiohttp import web
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from msgspec import Struct

TOKEN = "t0ken-of-the-service"
KEY = {"token": TOKEN}
PRIVATE = rsa.generate_private_key(65537, 2048)
PEM = PRIVATE.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
ACCOUNT = {"clientEmail": "shop@project.example", "privateKey": PEM, "scope": "sheets"}


async def issue(request: web.Request) -> web.Response:
    """A token for a service account that has signed what it asserts."""
    form = parse_qs(await request.text())
    [assertion] = form["assertion"]
    signed, _, signature = assertion.rpartition(".")
    PRIVATE.public_key().verify(_bytes(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    claims = json.loads(_bytes(signed.partition(".")[2]))
    is_right = (
        claims["iss"] == ACCOUNT["clientEmail"] and claims["aud"].endswith("/token") and "sheets" in claims["scope"]
    )
    return web.json_response({"access_token": TOKEN, "expires_in": 3600}, status=200 if is_right else 400)


def _bytes(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


class Counterpart(Struct):
    """A service that answers one call: where it is asked, with what, and what it says."""

    credential: str
    values: dict[str, Any]
    method: str
    path: str
    answer: Any
    status: int = 200

    def at(self, url: str) -> dict[str, Any]:
        """The fields of a credential for the service at this address."""
        return self.values | {"baseUrl": url} | ({"tokenUrl": f"{url}/token"} if self.credential == "google" else {})

    def serve(self, site: Any) -> None:
        """Has a site answer as the service does."""

        async def handle(request: web.Request) -> web.Response:
            if request.method != self.method:
                return web.Response(status=405)
            return web.Response(status=self.status, text=json.dumps(self.answer), content_type="application/json")

        site.answers |= {self.path: handle, "/token": issue}


SERVICES = {
    "slack.send": Counterpart(
        "slack", KEY, "POST", "/chat.postMessage", {"ok": True, "ts": "1503435956.000247", "channel": "C024BE91L"}
    ),
    "github.issue": Counterpart(
        "github", KEY, "POST", "/repos/acme/shop/issues",
        {"number": 17, "html_url": "https://github.example/acme/shop/issues/17", "id": 99}, 201,
    ),
    "github.comment": Counterpart(
        "github", KEY, "POST", "/repos/acme/shop/issues/17/comments",
        {"id": 5, "html_url": "https://github.example/acme/shop/issues/17#5"}, 201,
    ),
    "github.dispatch": Counterpart(
        "github", KEY, "POST", "/repos/acme/shop/actions/workflows/deploy.yml/dispatches", None, 204
    ),
    "stripe.charge": Counterpart(
        "stripe", {"apiKey": TOKEN}, "POST", "/v1/payment_intents",
        {"id": "pi_1", "status": "succeeded", "amount": 1295, "currency": "eur", "latest_charge": "ch_1"},
    ),
    "stripe.refund": Counterpart(
        "stripe", {"apiKey": TOKEN}, "POST", "/v1/refunds",
        {"id": "re_1", "status": "succeeded", "amount": 500, "currency": "eur"},
    ),
    "stripe.customer": Counterpart(
        "stripe", {"apiKey": TOKEN}, "POST", "/v1/customers",
        {"id": "cus_1", "email": "ada@example.org", "name": "Ada Lovelace"},
    ),
    "stripe.search": Counterpart(
        "stripe", {"apiKey": TOKEN}, "GET", "/v1/customers/search",
        {"data": [{"id": "cus_1"}], "has_more": False, "next_page": None},
    ),
    "telegram.send": Counterpart(
        "telegram", KEY, "POST", f"/bot{TOKEN}/sendMessage",
        {"ok": True, "result": {"message_id": 42, "chat": {"id": -1001}}},
    ),
    "discord.send": Counterpart(
        "discord", KEY, "POST", "/channels/109876/messages", {"id": "7", "channel_id": "109876"}
    ),
    "google.sheets.append": Counterpart(
        "google", ACCOUNT, "POST", "/v4/spreadsheets/sheet-1/values/Orders!A1:append",
        {"updates": {"updatedRange": "Orders!A2:B3", "updatedRows": 2}},
    ),
    "google.sheets.read": Counterpart(
        "google", ACCOUNT, "GET", "/v4/spreadsheets/sheet-1/values/Orders!A1:B9",
        {"range": "Orders!A1:B2", "values": [["o-17", 129.5], ["o-18", 3]]},
    ),
    "notion.page": Counterpart(
        "notion", KEY, "POST", "/v1/pages", {"id": "p-1", "url": "https://notion.example/p-1"}
    ),
    "airtable.records": Counterpart(
        "airtable", KEY, "POST", "/v0/appShop/Orders", {"records": [{"id": "rec1", "fields": {"Name": "o-17"}}]}
    ),
}  # fmt: skip
"""Each preset with the service behind it."""
MODELS = {
    "llm.chat": Counterpart(
        "openai", {"apiKey": TOKEN}, "POST", "/chat/completions",
        {"model": "gpt-4o-mini", "choices": [{"message": {"content": '{"label": "bug"}'}, "finish_reason": "stop"}],
         "usage": {"prompt_tokens": 10, "completion_tokens": 5}},
    ),
    "llm.embed": Counterpart(
        "openai", {"apiKey": TOKEN}, "POST", "/embeddings",
        {"data": [{"index": 1, "embedding": [0.125, 1.0]}, {"index": 0, "embedding": [0.5, 0.25]}],
         "usage": {"total_tokens": 4}},
    ),
}  # fmt: skip
"""Language models."""
