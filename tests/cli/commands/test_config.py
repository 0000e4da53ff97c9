"""What is set, and who said so."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict, replace

from ropewalk.access.rates import Rate
from ropewalk.configuration import resolve
from ropewalk.core.breaker import BreakerPolicies, BreakerPolicy, BreakerRule
from ropewalk.core.duration import SECOND
from ropewalk.core.errors import InvalidInput
from ropewalk.core.rate_limit import RateLimit
from ropewalk.service.stream_limits import StreamLimits
from ropewalk.settings import SETTINGS, Kind, Setting
from ropewalk.wiring import Settings
from tests.cli.conftest import Invoke

Answer = Callable[..., Any]
SAMPLES = {
    Kind.INTEGER: "7",
    Kind.NUMBER: "7.5",
    Kind.SWITCH: "on",
    Kind.WORDS: "a, b",
    Kind.DURATION: "7d",
    Kind.TEXT: "x",
    Kind.TABLES_BY_NAME: '{"shop": {"limit": 10, "per": "1s"}}',
}


def in_file(folder: Path, text: str, name: str = "ropewalk.toml") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_a_flag_wins_over_the_environment_that_over_the_file_that_over_the_default(tmp_path: Path):
    in_file(tmp_path, "lease = 3\nhands = 3\ndrain = 3\n[server]\nport = 3\n")
    environment = {"ROPEWALK_LEASE": "2", "ROPEWALK_HANDS": "2"}

    found = resolve({"lease": 1.0, "slots": None}, environment, folder=str(tmp_path))

    assert [found[name] for name in ("lease", "hands", "drain", "server.port", "slots")] == [1, 2, 3, 3, 20_000]
    origins = {each.setting.name: each.origin for each in found}
    assert [origins[name] for name in ("lease", "hands", "slots")] == ["--lease", "ROPEWALK_HANDS", "default"]
    assert origins["server.port"] == str(tmp_path / "ropewalk.toml")


def test_what_is_not_set_is_what_the_code_has():
    assert asdict(Settings.of(resolve(environment={}, folder=None))) == asdict(Settings())


def test_breakers_and_dispatch_are_as_they_were_set(tmp_path: Path):
    file = in_file(
        tmp_path,
        "[breaker]\nminimum_calls = 1\nfailure_rate = 25\nwindow = 2.5\ncooldown = 3\nprobes = 2\nsuccesses = 4\n"
        "[[breaker.rules]]\nhost = '*.shop.example'\nfailure_rate = 80\n"
        "[dispatcher]\nattempts = 5\nbatch = 6\n",
    )

    native = Settings.of(resolve(environment={}, file=file)).worker

    general = BreakerPolicy(1, 0.25, 2_500_000, 3_000_000, 2, 4)
    rule = BreakerRule(replace(general, failure_share=0.8), host="*.shop.example")
    assert native.breaker == BreakerPolicies(general, (rule,))
    assert (native.dispatch_attempts, native.claim_batch) == (5, 6)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_every_setting_can_be_said_in_the_environment(setting: Setting):
    text = SAMPLES.get(setting.kind, "[]" if setting.default == () else '{"A": "b"}')

    found = resolve(environment={setting.variable: text}, folder=None)

    assert found.is_set(setting.name)
    assert found[setting.name] == resolve({setting.name: found[setting.name]}, {}, folder=None)[setting.name]


@pytest.mark.parametrize(
    ("environment", "place"),
    [
        ({"ROPEWALK_LEASE": "soon"}, "ROPEWALK_LEASE: must be a number, not 'soon'"),
        ({"ROPEWALK_LEASE": "0"}, "ROPEWALK_LEASE: must be from 1 to 3,600, not 0"),
        ({"ROPEWALK_LEASE": "NaN"}, "ROPEWALK_LEASE: must be from 1 to 3,600, not nan"),
        ({"ROPEWALK_STREAMS_READERS": "0"}, "ROPEWALK_STREAMS_READERS: must be from 1 to 1,000,000, not 0"),
        ({"ROPEWALK_STREAMS_BEAT": "60"}, "ROPEWALK_STREAMS_BEAT: must be from 1 to 20, not 60"),
        ({"ROPEWALK_ACCESS_FAILURES_PER_MINUTE": "-1"}, "FAILURES_PER_MINUTE: must be from 0 to 1,000,000, not -1"),
        ({"ROPEWALK_POOL": "a\udcff"}, r"ROPEWALK_POOL: must be a text, not 'a\udcff'"),
        ({"ROPEWALK_POOLED": "perhaps"}, "ROPEWALK_POOLED: must be true or false, not 'perhaps'"),
        ({"ROPEWALK_SERVER_PORT": "80.5"}, "ROPEWALK_SERVER_PORT: must be an integer"),
        ({"ROPEWALK_SERVER_PORT": "true"}, "ROPEWALK_SERVER_PORT: must be an integer"),
        ({"ROPEWALK_RETENTION_EXECUTIONS": "long"}, "ROPEWALK_RETENTION_EXECUTIONS: 'long' is no duration"),
        ({"ROPEWALK_CONFIG": "nowhere.toml"}, "nowhere.toml cannot be used: No such file"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_with_its_place(environment: dict[str, str], place: str):
    with pytest.raises(InvalidInput) as refusal:
        resolve(environment=environment, folder=None)

    assert place in str(refusal.value)


def test_a_secret_that_makes_no_sense_is_refused_without_being_told():
    with pytest.raises(InvalidInput) as refusal:
        resolve(environment={"ROPEWALK_SMTP_PASSWORD": "s3cret\udcff"}, folder=None)

    assert str(refusal.value) == "ROPEWALK_SMTP_PASSWORD: must be a text"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("ropewalk.toml", "nods = []", "cannot be used: nods is no setting; did you mean nodes?"),
        ("ropewalk.toml", "[server]\nprot = 1", "server.prot is no setting; did you mean server.port?"),
        ("ropewalk.toml", "[server]\nport = 'x'", "server.port: must be an integer, not 'x'"),
        ("ropewalk.toml", "server = 1", "server is no setting"),
        ("ropewalk.toml", "db = ", "cannot be used: Invalid value (at end of document)"),
        ("ropewalk.yaml", "- db", "must be a mapping of settings"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_with_the_place(tmp_path: Path, name: str, text: str, words: str):
    file = in_file(tmp_path, text, name)

    with pytest.raises(InvalidInput) as refusal:
        resolve(environment={}, file=file)

    assert file in str(refusal.value)
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[breaker]\nfailure_rate = 101", "breaker.failure_rate: must be from 1 to 100, not 101"),
        ("[breaker]\nfailure_rate = 0", "breaker.failure_rate: must be from 1 to 100, not 0"),
        (
            "[breaker]\nminimum_calls = 70000",
            "breaker.minimum_calls: 70,000 calls in 60 s are more than 1,000 a second",
        ),
        ("[breaker]\nfailures = 5", "breaker.failures is no setting; did you mean breaker.failure_rate?"),
        ("[[breaker.rules]]\nfailure_rate = 5", "breaker.rules[0]: must say which targets it is for"),
        ("[[breaker.rules]]\ntype = 'x'\nfailure_rate = 0", "breaker.rules[0].failure_rate: must be a number from 1"),
        ("[[breaker.rules]]\ntype = 'x'\nminimum_calls = 1.5", "breaker.rules[0].minimum_calls: must be a number"),
        ("[[breaker.rules]]\ntype = 'x'\nwindow = 0.1\nminimum_calls = 101", "so the breaker would never open"),
        ("[[breaker.rules]]\nhost = 'http://x'", "breaker.rules[0].host: must be a host like shop.example"),
        ("[[breaker.rules]]\ntype = 'x'\nodd = 1", "breaker.rules[0].odd: is no field of a rule"),
        (
            "[rate_limits.shop]\nlimit = 0\nper = '1s'",
            "rate_limits.shop.limit: must be a whole number from 1 to 1,000,000",
        ),
        ("[rate_limits.shop]\nlimit = 1000000000\nper = '1s'", "rate_limits.shop.limit: must be a whole number from 1"),
        ("[rate_limits.shop]\nlimit = 1000000\nper = '1s'", "are more than 10,000 a second"),
        ("[rate_limits.shop]\nlimit = true\nper = '1s'", "rate_limits.shop.limit: must be a whole number"),
        ("[rate_limits.shop]\nlimit = 1", "rate_limits.shop.per: is missing: write it like 1s"),
        ("[rate_limits.shop]\nlimit = 1\nper = '0s'", "rate_limits.shop.per: must be from 10ms to 4w3d"),
        ("[rate_limits.shop]\nlimit = 1\nper = 'soon'", "rate_limits.shop.per: 'soon' is no duration"),
        ("[rate_limits.shop]\nlimit = 1\nper = '1s'\nburst = 1", "rate_limits.shop.burst: is no field of a rate limit"),
        ("[rate_limits.shop]\nlimit = 1\nper = '1s'\nhosts = 'x'", "rate_limits.shop.hosts: must be a list"),
        ("[rate_limits.'a b']\nlimit = 1\nper = '1s'", "rate_limits.a b: the name of a limit is a letter"),
        ("[rate_limits]\nshop = 10", "rate_limits: must be a table of tables"),
    ],
)
def test_a_breaker_that_can_never_open_and_a_limit_that_is_none_are_refused(tmp_path: Path, text: str, words: str):
    with pytest.raises(InvalidInput) as refusal:
        Settings.of(resolve(environment={}, file=in_file(tmp_path, text)))

    assert words in str(refusal.value)


def test_names_may_be_written_as_documents_write_them(tmp_path: Path):
    text = "rateLimits: { shop: { limit: 10, per: 1s, hosts: [shop.example] } }\nbreaker: { minimumCalls: 7 }\n"

    native = Settings.of(resolve(environment={}, file=in_file(tmp_path, text, "settings.yaml"))).worker

    assert native.rate_limits == {"shop": RateLimit(10, SECOND, ("shop.example",))}
    assert native.breaker.general.minimum_calls == 7


def test_a_file_may_be_yaml(tmp_path: Path):
    file = in_file(tmp_path, "db: jobs.db\nserver: { port: 1 }\n", "settings.yaml")

    found = resolve(environment={}, file=file)

    assert (found["db"], found["server.port"]) == ("jobs.db", 1)


def test_only_what_is_meant_for_expressions_is_shown_to_them():
    found = Settings.from_environment({"ROPEWALK_ENV_CITY": "Berlin", "PATH": "/bin"})

    assert found.env == {"CITY": "Berlin"}


def test_issuers_are_tables_of_the_file(tmp_path: Path):
    table = '[[access.issuers]]\nissuer = "https://id.example"\naudience = "ropewalk"\njwks_url = "{url}"\n'
    good = in_file(tmp_path, table.format(url="https://id.example/jwks"))
    bad = in_file(tmp_path, table.format(url="ftp://id.example/jwks"), "bad.toml")

    settings = Settings.of(resolve(environment={}, file=good))

    assert settings.access.issuers[0].audience == "ropewalk"
    with pytest.raises(InvalidInput, match="jwks_url"):
        Settings.of(resolve(environment={}, file=bad))


@pytest.mark.parametrize(("count", "rate"), [("6", Rate(0.1, 6)), ("0", None)])
def test_failed_logins_are_let_through_by_the_minute(count: str, rate: Rate | None):
    settings = Settings.from_environment({"ROPEWALK_ACCESS_FAILURES_PER_MINUTE": count})

    assert settings.access.limits.failures == rate


def test_every_limit_of_streams_is_a_setting(tmp_path: Path):
    file = in_file(tmp_path, "[streams]\nreaders=1\nper_actor=2\nkept=3\nkept_mib=4\nstalled=5\nbeat=6\n")

    found = Settings.of(resolve(environment={}, file=file)).streams

    assert found == StreamLimits(readers=1, per_actor=2, kept=3, kept_mib=4, stalled=5, beat=6)


def test_show_says_each_value_and_where_it_came_from(answer: Answer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ROPEWALK_LEASE", "20")
    monkeypatch.setenv("ROPEWALK_PROT", "1")
    monkeypatch.setenv("ROPEWALK_ALLOW_HTTP", "1")

    told = answer("config", "show", "--db", "postgresql://anna:secret@host/db")

    assert told["settings"]["lease"] == {"value": 20.0, "origin": "ROPEWALK_LEASE"}
    assert told["settings"]["db"] == {"value": "postgresql://anna:***@host/db", "origin": "--db"}
    assert told["settings"]["nodes"]["origin"] == "ropewalk.toml"
    assert told["unknown"] == ["ROPEWALK_PROT"]


def test_show_keeps_secrets(invoke: Invoke, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ROPEWALK_ENV_KEY", "hush")
    monkeypatch.setenv("ROPEWALK_SMTP_PASSWORD", "a-secret-too")
    monkeypatch.setenv("ROPEWALK_DB", "postgresql://anna:secret@host/db")

    shown = invoke("config", "show").output + invoke("config", "show", "--json").output

    assert "ROPEWALK_ENV_" in shown
    assert "hush" not in shown
    assert "secret" not in shown


def test_a_command_takes_its_settings_from_the_file_it_is_given(answer: Answer, tmp_path: Path):
    file = in_file(tmp_path, f"db = {json.dumps(str(tmp_path / 'other.db'))}", "other.toml")

    answer("run", "hello.yaml", "--config", file)

    assert (tmp_path / "other.db").exists()
