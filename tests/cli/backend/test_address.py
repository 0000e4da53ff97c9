"""Addresses of stores: what is taken, and what is shown of it."""

import pytest

from ropewalk.cli.backend.address import address, shown
from ropewalk.cli.backend.project import project
from ropewalk.core.errors import InvalidInput


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ("jobs.db", "jobs.db"),
        ("postgres://host/db", "postgres://host/db"),
        ("postgresql://anna@host/db", "postgresql://anna@host/db"),
        ("postgresql://anna:secret@host:5432/db", "postgresql://anna:***@host:5432/db"),
        ("postgresql://anna:se%40cret@[::1]:5432,other/db", "postgresql://anna:***@[::1]:5432,other/db"),
        ("postgresql:///db?host=/run&password=secret&x=1", "postgresql:///db?host=/run&password=***&x=1"),
        ("postgresql://anna:se@cret@host/db?sslpassword=secret", "postgresql://anna:***@host/db?sslpassword=***"),
    ],
)
def test_an_address_is_shown_without_its_password(given: str, seen: str):
    assert shown(address(given)) == seen


@pytest.mark.parametrize("password", ["se/cret", "12/cret", "se#cret", "se?cret", "[cret"])
def test_an_address_with_an_unquoted_password_is_refused_and_not_repeated(password: str):
    with pytest.raises(InvalidInput, match="cannot be read") as refusal:
        address(f"postgresql://anna:{password}@host/db")

    assert "cret" not in str(refusal.value)


def test_a_hint_names_the_store_without_its_password():
    here = project("postgresql://anna:secret@host/db", (), is_json=False)

    assert here.hint("worker") == "ropewalk worker --db 'postgresql://anna:***@host/db'"


@pytest.mark.parametrize(
    ("name", "value"), [("ROPEWALK_LEASE", "soon"), ("ROPEWALK_LEASE", "0"), ("ROPEWALK_POOLED", "perhaps")]
)
def test_a_setting_that_makes_no_sense_is_refused(name: str, value: str):
    with pytest.raises(InvalidInput):
        project(None, (), is_json=False, environment={name: value})
