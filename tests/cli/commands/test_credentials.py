"""`ropewalk credentials` on a file, beside its owner, and through a server: the same words, and never a secret."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke, in_terminal
from tests.client.servers import Served

SECRET = "s3cret-canary-0815"
SET = ("credentials", "set", "shop", "--type", "http.basic", "--field", "username=ann", "--host", "api.example.org")


@pytest.fixture(params=["store", "server"])
def there(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The options with which a command works on a file, and through a server."""
    return () if request.param == "store" else ("--server", request.getfixturevalue("server").url)


def test_a_secret_is_piped_in_and_shown_by_no_command(invoke: Invoke, there: tuple[str, ...]):
    made = invoke(*SET, *there, stdin=SECRET)
    looks = [
        invoke("credentials", *words, *there)
        for words in (("ls",), ("show", "shop"), ("ls", "--json"), ("show", "shop", "--json"), ("share", "shop"))
    ]

    assert (made.exit_code, made.stdout) == (0, "shop: kept, revision 1\n")
    assert [each.exit_code for each in looks] == [0] * 5
    assert not [each.output for each in looks if SECRET in each.output]
    assert "api.example.org" in looks[0].stdout
    assert "(stored)" in looks[1].stdout


@pytest.mark.parametrize("words", [
    ("ls",), ("show", "shop"), ("types",), ("types", "google"), ("share", "shop"), ("--help",), ("set", "--help"),
])  # fmt: skip
def test_no_line_is_wider_than_a_terminal_of_80_columns(invoke: Invoke, words: tuple[str, ...]):
    hosts = (f"--host=a-very-long-name-of-a-host-{n}.example.org" for n in range(6))
    assert invoke(*SET, *hosts, stdin=SECRET).exit_code == 0

    code, shown = in_terminal(["credentials", *words], columns=80)

    assert code == 0
    assert not [line for line in shown.splitlines() if len(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line)) > 80]


def test_a_credential_is_changed_shared_and_removed(invoke: Invoke, there: tuple[str, ...]):
    invoke(*SET, *there, stdin=SECRET)
    said = [
        invoke("credentials", *words, *there).stdout
        for words in (
            ("set", "shop", "--field", "username=bob"), ("share", "shop", "user:cem"), ("share", "shop"),
            ("share", "shop", "user:cem", "--remove"), ("rotate",), ("rm", "shop"), ("rm", "shop"), ("ls",),
        )
    ]  # fmt: skip

    assert said[0] == "shop: kept, revision 2\n"
    assert said[1] == "user:cem may use shop\n"
    assert "user:cem" in said[2]
    assert said[3:] == [
        "user:cem may use shop no more\n",
        "0 keys were wrapped by another master key, and are by this one now\n",
        "shop: removed\n", "shop: there is none\n", "no credentials\n",
    ]  # fmt: skip


@pytest.mark.parametrize(("words", "stdin", "says"), [
    (("set", "shop", "--type", "http.basic", "--field", f"password={SECRET}"), None, "password is a secret"),
    (("set", "shop", "--type", "nothing"), SECRET, "there is no type 'nothing'"),
    (("set", "shop", "--type", "generic"), "", "value is wanted"),
    (("set", "shop", "--type", "generic", "--field", "value"), SECRET, "must be NAME=VALUE"),
    (("set", "shop", "--type", "generic", "--secret", "other"), SECRET, "generic has no secret 'other'"),
    (("set", "shop", "--type", "generic", "--values"), SECRET, "stdin must hold a JSON object"),
    (("set", "shop", "--type", "generic", "--field", "more=1"), SECRET, "values.more"),
    (("set", "sh/op", "--type", "generic"), SECRET, "name: must be"),
    (("set", "shop", "--type", "generic", "--host", "http://a"), SECRET, "hosts[0]"),
    (("set", "shop", "--type", "generic", "--field", "value=env:HOME"), None, "credentials.env"),
    (("set", "shop", "--type", "generic"), "x" * 70_000, "stdin has more than"),
])  # fmt: skip
def test_what_cannot_be_kept_is_refused_without_the_secret(invoke: Invoke, words, stdin, says):
    invoke("credentials", "set", "other", "--type", "generic", stdin="x")

    refused = invoke("credentials", *words, stdin=stdin)

    assert refused.exit_code == 2
    assert says in refused.stderr
    assert SECRET not in refused.output
    assert json.loads(invoke("credentials", "ls", "--json").stdout)[0]["name"] == "other"


def test_all_fields_may_come_as_json(invoke: Invoke, there: tuple[str, ...]):
    values = {"accessKeyId": "a", "secretAccessKey": SECRET, "sessionToken": SECRET}
    made = invoke("credentials", "set", "s3", "--type", "aws", "--values", "--json", *there, stdin=json.dumps(values))

    assert json.loads(made.stdout)["secrets"] == {"secretAccessKey": "stored", "sessionToken": "stored"}


def test_a_type_that_cannot_be_tried_says_so_and_one_that_is_refused_ends_with_1(invoke: Invoke):
    invoke(*SET, stdin=SECRET)
    invoke("credentials", "set", "key", "--type", "generic", stdin=SECRET)

    good, bad = invoke("credentials", "test", "key"), invoke("credentials", "test", "shop")

    assert (good.exit_code, bad.exit_code) == (0, 1)
    assert "cannot be tried" in good.stdout
    assert "testUrl" in bad.stdout


def test_a_secret_that_is_typed_is_not_shown(project: Path):
    typed = f"{SECRET}\n".encode()
    code, shown = in_terminal([*SET, "--db", str(project / "typed.db")], "password", typed)

    assert code == 0
    assert "kept, revision 1" in shown
    assert SECRET not in shown


def test_the_owner_of_the_file_keeps_what_another_command_sets(invoke: Invoke, start, project: Path):
    owner = start("up", "--port", "0", "--json", "--db", str(project / "owned.db"))
    assert owner.stdout.readline()
    there = ("--db", str(project / "owned.db"))

    made = invoke(*SET, *there, stdin=SECRET)

    assert made.stdout == "shop: kept, revision 1\n", made.output
    assert "shop" in invoke("credentials", "ls", *there).stdout


def test_a_store_under_another_master_key_says_what_to_do(invoke: Invoke, project: Path):
    invoke(*SET, stdin=SECRET)
    (project / "ropewalk.db.key").unlink()

    refused = invoke("credentials", "set", "bank", "--type", "generic", stdin=SECRET)

    assert refused.exit_code == 4
    assert "ROPEWALK_KEY" in refused.stderr


def test_a_key_file_that_was_moved_aside_is_accepted_until_the_keys_are_wrapped_anew(invoke: Invoke, project: Path):
    invoke(*SET, stdin=SECRET)
    (project / "ropewalk.db.key").rename(project / "ropewalk.db.key.before")

    rotated = invoke("credentials", "rotate")
    (project / "ropewalk.db.key.before").unlink()

    assert rotated.stdout.startswith("1 keys were wrapped")
    assert invoke("credentials", "set", "shop", "--field", "username=bob").exit_code == 0


def test_a_server_that_does_not_know_the_credential_says_so(invoke: Invoke, server: Served):
    refused = invoke("credentials", "show", "absent", "--server", server.url)

    assert refused.exit_code == 2
    assert "there is no credential 'absent'" in refused.stderr


def test_the_doctor_says_whether_the_credentials_can_be_read(invoke: Invoke, project: Path):
    def finding() -> list[tuple[str, str]]:
        found = json.loads(invoke("doctor", "--json").stdout)
        return [(each["health"], each["value"]) for each in found if each["what"] == "credentials"]

    invoke("run", "hello.yaml")
    assert finding() == []
    invoke(*SET, stdin=SECRET)
    assert finding() == [("ok", "of 1 workspaces can be read")]
    (project / "ropewalk.db.key").unlink()

    ((health, value),) = finding()

    assert health == "fault"
    assert value.endswith("and here is none")
    assert not (project / "ropewalk.db.key").exists()
