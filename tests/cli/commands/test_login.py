"""Which server is meant, and how its token is kept: profiles, the keyring, the environment."""

import stat
import sys
from pathlib import Path

import pytest

from ropewalk.cli.backend import profiles
from tests.cli.conftest import Invoke
from tests.client.servers import Served

KEYRING = """
class Ring:
    priority = 5

passwords = {}
get_keyring = Ring

def set_password(service, name, password):
    passwords[service, name] = password

def get_password(service, name):
    return passwords.get((service, name))
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where profiles are kept; there is no login yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("ROPEWALK_TOKEN", "ROPEWALK_SERVER", "ROPEWALK_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "config" / "ropewalk"


def test_a_person_who_has_logged_in_names_the_profile(server: Served, home: Path, invoke: Invoke):
    first = invoke("login", server.url, "--profile", "work", stdin=f"{server.token}\n")
    result = invoke("run", "hello.yaml", "--profile", "work")

    assert first.exit_code == 0, first.output
    assert "only you can read" in first.stdout
    assert server.token not in first.output
    assert result.stdout == '"Hello, world!"\n'


def test_a_token_that_opens_nothing_is_told_where_tokens_come_from(
    server: Served, home: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ROPEWALK_TOKEN", "rw_nobody")

    result = invoke("executions", "ls", "--server", server.url)

    assert result.exit_code == 2
    assert "ropewalk login URL" in result.stderr


def test_only_their_user_can_read_the_tokens(server: Served, home: Path, invoke: Invoke):
    invoke("login", server.url, stdin=server.token)
    tokens = home / "tokens.toml"
    mode = stat.S_IMODE(tokens.stat().st_mode)
    tokens.chmod(0o644)

    result = invoke("executions", "ls", "--profile", "default")

    assert mode == 0o600
    assert server.token not in (home / "profiles.toml").read_text()
    assert result.exit_code == 2
    assert "others can read" in result.stderr


def test_the_environment_may_name_server_and_token(
    server: Served, home: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ROPEWALK_SERVER", server.url)
    monkeypatch.setenv("ROPEWALK_TOKEN", server.token)
    there = invoke("run", "hello.yaml")
    here = invoke("executions", "ls", "--db", "here.db")

    assert there.stdout == '"Hello, world!"\n'
    assert "there is no store at here.db" in here.stderr


def test_a_keyring_keeps_the_token_where_there_is_one(
    server: Served, home: Path, invoke: Invoke, project: Path, monkeypatch: pytest.MonkeyPatch
):
    (project / "keyring.py").write_text(KEYRING, encoding="utf-8")
    monkeypatch.syspath_prepend(str(project))
    kept = invoke("login", server.url, stdin=server.token)
    found = invoke("run", "hello.yaml", "--profile", "default")
    monkeypatch.delitem(sys.modules, "keyring")

    assert "in the keyring" in kept.stdout
    assert found.stdout == '"Hello, world!"\n'
    assert not (home / "tokens.toml").exists()


def test_a_token_that_opens_nothing_is_not_kept(server: Served, home: Path, invoke: Invoke):
    result = invoke("login", server.url, stdin="rw_wrong_token")

    assert result.exit_code == 2
    assert not home.exists()


def test_profiles_and_tokens_of_others_stay_when_one_is_added(home: Path):
    for name in ('one "two"', "three"):
        profiles.keep_profile(name, profiles.Server(f"https://{name[:3]}.example", "acme"))
        profiles.keep_token(f"https://{name[:3]}.example", f"token of {name}")

    assert profiles.profile('one "two"') == profiles.Server("https://one.example", "acme")
    assert profiles.token_for("https://thr.example") == "token of three"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--server", "http://127.0.0.1:1", "--db", "here.db"), "give one of them"),
        (("--server", "http://127.0.0.1:1", "--profile", "work"), "give one of them"),
        (("--workspace", "acme"), "--workspace is for a server"),
        (("--profile", "nosuch"), "there is no profile 'nosuch'"),
        (("--server", "http://127.0.0.1:1"), "set ROPEWALK_TOKEN, or log in"),
        (("--server", "http://ropewalk.example"), "log in"),
        (("--server", "nonsense"), "log in"),
    ],
)
def test_what_is_not_clear_about_the_server_is_refused(options: tuple[str, ...], says: str, invoke: Invoke, home: Path):
    result = invoke("executions", "ls", *options)

    assert result.exit_code == 2
    assert says in result.stderr
