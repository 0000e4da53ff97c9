"""Workflows and values by the names people give them: a file, `module:workflow`, `@file`."""

import json
import sys
from pathlib import Path
from typing import Any

from msgspec import Struct

from ropewalk.cli.views.errors import InvalidFile
from ropewalk.core.canonical import JSON
from ropewalk.core.errors import Invalid, InvalidInput, RopewalkError
from ropewalk.documents import Document, load_document, read_document
from ropewalk.modules import load_module
from ropewalk.workflow import Workflow


class Loaded(Struct):
    """A workflow to execute; `document` is the file it stands in, `modules` where its functions are."""

    value: JSON
    document: Document | None = None
    modules: tuple[str, ...] = ()

    def explain(self, error: Invalid) -> Invalid:
        """The same refusal, with the lines of the file if there is one."""
        return error if self.document is None else InvalidFile(error, self.document)


def load_workflow(name: str) -> Loaded:
    """The workflow in a YAML or JSON file, or the one at `module:name` (`file.py:name`, `:workflow` if left out)."""
    module, colon, attribute = name.rpartition(":")
    if colon and not Path(name).exists():
        return _from_module(module, attribute)
    if name.endswith(".py"):
        return _from_module(name, "workflow")
    try:
        document = read_document(name)
    except FileNotFoundError as error:
        raise RopewalkError(f"there is no file {name}: name a workflow file, or MODULE:WORKFLOW") from error
    return Loaded(document.value, document)


def _from_module(name: str, attribute: str) -> Loaded:
    found = getattr(load_module(name), attribute, None)
    if not isinstance(found, Workflow):
        raise RopewalkError(f"{name} has no workflow {attribute!r}: name a global that is a ropewalk.Workflow")
    return Loaded(found.document(), None, (name,))


# Values on the command line


def json_value(text: str, what: str) -> JSON:
    """The JSON of an option: written out, `@file`, or `-` for what comes in."""
    if text == "-":
        text = sys.stdin.read()
    elif text.startswith("@"):
        return load_document(Path(text[1:]).read_text(encoding="utf-8"), name=text[1:]).value
    try:
        return json.loads(text, parse_constant=_no_number)
    except ValueError as error:
        raise InvalidInput(f"{what} is no JSON ({error}): quote text like '\"this\"', or use @file") from error


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def assignments(pairs: tuple[str, ...], option: str) -> dict[str, JSON]:
    """`key=value` pairs; a value that is no JSON is text."""
    return dict(_assignment(pair, option) for pair in pairs)


def _assignment(pair: str, option: str) -> tuple[str, JSON]:
    key, sign, value = pair.partition("=")
    if not sign or not key:
        raise InvalidInput(f"{option} {pair}: write it as {option} key=value")
    try:
        return key, json.loads(value, parse_constant=_no_number)
    except ValueError:
        return key, value
