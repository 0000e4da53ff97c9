"""A secret that a counterpart repeats is in nothing that a run reports."""

import base64
import json
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.waits import Approval
from ropewalk.nodes.base import Inputs, NodeContext, NodeType, Output, Registry, Wait
from ropewalk.nodes.masking import MASK, Masking
from ropewalk.service import reading
from ropewalk.wiring import Settings, open_service

SECRETS = ("s3cret-password", 'pä"ss/w+ör d%', "x\\y{z}", "P" * 300)
FORMS = {
    "as it is": lambda secret: secret,
    "in capitals": lambda secret: secret.upper(),
    "backwards": lambda secret: secret[::-1],
    "in hex": lambda secret: secret.encode().hex(),
    "in hex in capitals": lambda secret: secret.encode().hex().upper(),
    "in a URL": lambda secret: quote(secret, safe=""),
    "in a URL in small letters": lambda secret: quote(secret, safe="").lower(),
    "in the path of a URL": quote,
    "in a form": quote_plus,
    "percent by byte": lambda secret: "".join(f"%{byte:02X}" for byte in secret.encode()),
    "in JSON": lambda secret: json.dumps(secret)[1:-1],
    "in JSON in any script": lambda secret: json.dumps(secret, ensure_ascii=False)[1:-1],
    "in base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "in base64 for URLs": lambda secret: base64.urlsafe_b64encode(secret.encode()).decode().rstrip("="),
    "as AUTH PLAIN": lambda secret: base64.b64encode(f"\0user\0{secret}".encode()).decode(),
    "as basic authentication": lambda secret: base64.b64encode(f"us:{secret}".encode()).decode(),
    "inside of longer base64": lambda secret: base64.b64encode(f"a{secret} and more".encode()).decode(),
    "in base64 in a URL": lambda secret: quote(base64.b64encode(f"ab{secret}z".encode()).decode(), safe=""),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("secret", SECRETS, ids=lambda secret: secret[:10])
def test_a_secret_is_masked_however_it_is_written(form: str, secret: str):
    written = FORMS[form](secret)

    masked = Masking([secret]).text(f"535 you said {written}: no")

    assert masked.startswith("535 you said ***")
    assert written not in masked
    assert masked.endswith(": no")


@given(secret=st.text(min_size=8, max_size=40), ahead=st.binary(max_size=8), behind=st.binary(max_size=8))
def test_any_secret_is_masked_wherever_it_lies_in_base64(secret: str, ahead: bytes, behind: bytes):
    raw = secret.replace("\0", "0").encode()
    written = base64.b64encode(ahead + raw + behind).decode()

    assert written not in Masking([raw.decode()]).text(f"said {written} here")


@pytest.mark.parametrize(
    "text", ["as it is: s3cret-pa", "cut: s3cret-passwor…", "password: it began so", "x AHVzZXIAczNjcmV0LXBh…"]
)
def test_a_part_of_a_secret_is_masked_where_the_text_was_cut(text: str):
    masked = Masking(["s3cret-password"]).text(text)

    assert MASK in masked
    assert not any(part in masked for part in ("s3cret", "password:", "czNjcmV0"))


def test_what_is_no_secret_stays():
    text = "the mail server said 535 5.7.8 aGVsbG8gd29ybGQ= and more: ünïcode %20"

    assert Masking(["s3cret-password"]).text(text) == text
    assert Masking(["ab", "c"]).text("x y z 12") == "x y z 12"


def test_results_waits_and_errors_are_masked_in_every_part():
    masking, secret = Masking(["s3cret-password"]), "is s3cret-password"

    result = masking.result(Output({secret: [secret, 1, None, {"x": secret}]}, ("true",), 3))
    wait = masking.result(Approval(secret, {"x": secret}))
    error = masking.error(RunError(ErrorType.TRANSIENT, secret, secret, 3.0, 7))

    assert result == Output({f"is {MASK}": [f"is {MASK}", 1, None, {"x": f"is {MASK}"}]}, ("true",), 3)
    assert wait == Approval(f"is {MASK}", {"x": f"is {MASK}"})
    assert error == RunError(ErrorType.TRANSIENT, f"is {MASK}", f"is {MASK}", 3.0, 7)


class Repeats(NodeType):
    """A node of a third party, whose counterpart repeats what it was sent."""

    name = "repeats"

    class Parameters(Inputs):
        way: str

    async def run(self, parameters: Parameters, context: NodeContext) -> Output | Wait:
        said = f"you sent {base64.b64encode(SECRETS[0].encode()).decode()} or {SECRETS[0]}"
        context.conceal(SECRETS[0])
        context.log(said, answer={"said": said})
        match parameters.way:
            case "returns":
                return Output({"answer": said * 5_000})
            case "waits":
                return Approval(said)
            case "exits":
                raise SystemExit(said)
            case _:
                raise ValueError(said) from KeyError(said)


@pytest.mark.parametrize("way", ["returns", "waits", "raises", "exits"])
async def test_what_a_node_concealed_is_in_nothing_it_reports(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, way: str
):
    caplog.set_level("DEBUG")
    types = Registry.builtin()
    types.register(Repeats)
    node = {"id": "a", "type": "repeats", "with": {"way": way}, "retry": {"maxAttempts": 1}}

    async with open_service(Settings(db=str(tmp_path / "ropewalk.db")), types) as service:
        execution = await service.start(await service.save({"name": "test", "nodes": [node]}))
        async for _, event in service.follow(execution):
            if type(event).__name__ in ("RunWaiting", "NodeFailed", "NodeSucceeded"):
                break
        told = str(await reading.list_events(service.store, execution))
    told += "".join(path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file())
    told += caplog.text + str([vars(each) for each in caplog.records])

    assert f"you sent {MASK} or {MASK}" in told
    assert SECRETS[0] not in told
    assert base64.b64encode(SECRETS[0].encode()).decode() not in told
