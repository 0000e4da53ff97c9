"""The fields of a credential as a command is given them: plain ones as options, secrets by prompt or stdin."""

import json
import sys
from typing import Any, Final

import click
from msgspec import Struct

from ropewalk.core.canonical import JSON
from ropewalk.core.errors import InvalidInput, Problem

LONGEST: Final = 65_536
REFERENCES: Final = ("env:", "file:")


class Given(Struct, frozen=True):
    """What the options say."""

    fields: tuple[str, ...] = ()
    secret: str | None = None
    takes_json: bool = False


def values_of(given: Given, kind: dict[str, Any], *, is_new: bool) -> dict[str, JSON]:
    """The values to set; a secret that is missing is asked for, or read from stdin."""
    properties = kind["fields"].get("properties", {})
    secrets = [name for name, field in properties.items() if field.get("writeOnly")]
    values = dict(_option(each, properties, secrets) for each in given.fields)
    if given.takes_json:
        return values | _object(_stdin())
    wanted = _wanted(given, kind, secrets, values, is_new=is_new)
    return values | _asked(wanted)


def _option(text: str, properties: dict[str, Any], secrets: list[str]) -> tuple[str, JSON]:
    name, is_there, value = text.partition("=")
    if not is_there:
        raise InvalidInput([Problem(("--field",), f"must be NAME=VALUE, not {name!r}")])
    if name in secrets and not value.startswith(REFERENCES):
        raise InvalidInput([Problem(
            ("--field",), f"{name} is a secret, which every user of the machine could read here: pipe it in, or leave "
            "it out and it is asked for"
        )])  # fmt: skip
    is_number = properties.get(name, {}).get("type") == "integer" and value.isdecimal()
    return name, int(value) if is_number else value


def _wanted(given: Given, kind: dict[str, Any], secrets: list[str], values: dict[str, JSON], *, is_new: bool
            ) -> list[str]:  # fmt: skip
    """The secrets to ask for: the one that is named, else those that a new credential needs."""
    if given.secret is not None:
        if given.secret not in secrets:
            known = ", ".join(secrets)
            raise InvalidInput([Problem(("--secret",), f"{kind['name']} has no secret {given.secret!r}, but {known}")])
        return [given.secret]
    if not is_new and values:
        return []
    needed = [name for name in secrets if name in kind["fields"].get("required", ())] or secrets[:1]
    return [name for name in needed if name not in values]


def _asked(wanted: list[str]) -> dict[str, JSON]:
    if not wanted:
        return {}
    if sys.stdin.isatty():
        return {name: str(click.prompt(name, hide_input=True, err=True)) for name in wanted}
    if len(wanted) > 1:
        raise InvalidInput(f"stdin can hold one secret, and {' and '.join(wanted)} are wanted: pipe in JSON, --values")
    text = _stdin().removesuffix("\n").removesuffix("\r")
    if not text:
        raise InvalidInput(f"{wanted[0]} is wanted: type it, or pipe it in")
    return {wanted[0]: text}


def _stdin() -> str:
    text = sys.stdin.read(LONGEST + 1)
    if len(text) > LONGEST:
        raise InvalidInput(f"stdin has more than {LONGEST:,} characters")
    return text


def _object(text: str) -> dict[str, JSON]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        # What was read is not repeated: it may be a secret.
        raise InvalidInput("stdin must hold a JSON object of fields")
    return found
