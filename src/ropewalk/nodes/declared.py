"""Node types without code: an HTTP call, the schema of its parameters, what its errors mean and what it hands on.

Presets of Ropewalk and files of users are made by the same machinery; `declaring.py` reads and checks them. `request`
holds parameters of `http.request`. Expressions in it see the node's parameters as `input`, the fields of its credential
as `vars`, and the key of the attempt as `execution.idempotencyKey`; those in `errors` and `output` see `input`, and the
answer as `item`. A field that is null is not sent.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct
from pydantic import ValidationError
from yarl import URL

from ropewalk.core.errors import ErrorType, RunError
from ropewalk.core.expression import ExpressionError, Scope, Template, is_true
from ropewalk.core.schema import validate
from ropewalk.nodes.base import About, Facilities, NodeContext, NodeFailure, NodeType, Output
from ropewalk.nodes.credentials import Credential
from ropewalk.nodes.failure import LONGEST_BODY, LONGEST_MESSAGE, describe, shortened
from ropewalk.nodes.http.authentication import authentication_of
from ropewalk.nodes.http.request import HttpRequest, outcome_of
from ropewalk.nodes.http.statuses import Status, is_among

JSON: TypeAlias = Any


class ErrorRow(Struct, frozen=True):
    """What one kind of answer counts as: by its status, by an expression about it, or both."""

    type: ErrorType
    status: Status | list[Status] | None = None
    when: Template | None = None
    message: Template | None = None
    retry_after: Template | None = None


class Declaration(Struct, frozen=True, kw_only=True):
    """A node type as it is declared, checked and compiled."""

    name: str
    summary: str
    about: About
    parameters: dict[str, JSON]
    credential_types: tuple[str, ...]
    request: Template
    message: Template | None
    errors: tuple[ErrorRow, ...]
    output: Template
    defaults: Mapping[str, JSON]


class DeclaredNode(NodeType):
    """The node type of a declaration."""

    def __init__(self, declaration: Declaration) -> None:
        self.name = declaration.name
        self.summary = declaration.summary
        self.about = declaration.about
        self.defaults = declaration.defaults
        self.credentials = MappingProxyType({"": declaration.credential_types} if declaration.credential_types else {})
        self._declared = declaration

    def schema(self) -> dict[str, JSON]:
        return self._declared.parameters

    def accept(self, inputs: Mapping[str, JSON] | None) -> dict[str, JSON]:
        """The parameters with those that have a default; a permanent failure names every field that does not fit."""
        given = with_defaults(self._declared.parameters, inputs or {})
        if problems := validate(self._declared.parameters, given, ("with",)):
            raise NodeFailure.permanent("; ".join(map(str, problems[:20])))
        return given

    def target(self, parameters: Mapping[str, JSON]) -> str:
        """The type and where it calls by default: a credential may name another address, and is not asked for here."""
        try:
            request = self._declared.request.resolve(_request_scope(parameters, {}, ""))
            return f"{self.name} {URL(request['url']).origin()}"
        except (ExpressionError, ValueError, TypeError):
            return self.name

    def prepare(self, facilities: Facilities) -> None:
        _ = facilities.http

    async def run(self, parameters: Mapping[str, JSON], context: NodeContext) -> Output:
        credential = await self._credential(context)
        request = self._request(parameters, credential, context)
        authentication = None if credential is None else authentication_of(credential, context)
        try:
            answer = await outcome_of(request, context, authentication)
        except NodeFailure as failure:
            raise self._explained(failure, parameters) from None
        self._require_success(answer, parameters)
        try:
            return Output(self._declared.output.resolve(_answer_scope(parameters, answer)))
        except ExpressionError as error:
            message = f"{self.name} cannot make its output of the answer: {error}"
            raise NodeFailure.permanent(message, status=answer["status"]) from None

    async def _credential(self, context: NodeContext) -> Credential | None:
        types = self._declared.credential_types
        if not types:
            return None
        found = await context.credential("", *types)
        if found is None:
            raise NodeFailure.permanent(f"{self.name} needs a credential of the type {' or '.join(types)}")
        return found

    def _request(
        self, parameters: Mapping[str, JSON], credential: Credential | None, context: NodeContext
    ) -> HttpRequest.Parameters:
        values = {} if credential is None else dict(credential.values)
        template = self._declared.request
        try:
            made = template.resolve(_request_scope(parameters, values, context.idempotency_key))
        except ExpressionError as error:
            raise NodeFailure.permanent(f"{self.name} cannot make its request of the parameters: {error}") from None
        try:
            return HttpRequest.Parameters.model_validate(without_nulls(template.value, made))
        except ValidationError as refusal:
            raise NodeFailure.permanent(f"{self.name}: {describe(refusal, 'request')}") from None

    def _require_success(self, answer: Mapping[str, JSON], parameters: Mapping[str, JSON]) -> None:
        """Raises what a row says of an answer whose status is no failure."""
        scope = _answer_scope(parameters, answer)
        row = next(
            (row for row in self._declared.errors if row.when is not None and _applies(row, scope, answer)), None
        )
        if row is not None:
            body = msgspec.json.encode(answer.get("body")).decode()[:LONGEST_BODY]
            error = RunError(row.type, "", status=answer["status"], body=body)
            raise self._told(error, row, scope, f"{self.name} was refused")

    def _explained(self, failure: NodeFailure, parameters: Mapping[str, JSON]) -> NodeFailure:
        """The failure in the service's own words, classified as the table says."""
        error = failure.error
        if error.status is None:
            return failure
        answer = {"status": error.status, "headers": {}, "body": _decoded(error.body)}
        scope = _answer_scope(parameters, answer)
        row = next((row for row in self._declared.errors if _applies(row, scope, answer)), None)
        return self._told(error, row, scope, error.message)

    def _told(self, error: RunError, row: ErrorRow | None, scope: Scope, otherwise: str) -> NodeFailure:
        template = (row.message if row is not None else None) or self._declared.message
        said = None if template is None else _quietly(template, scope)
        message = f"{self.name}: {said}" if isinstance(said, str) and said else otherwise
        changes: dict[str, JSON] = {"message": shortened(message, LONGEST_MESSAGE)}
        if row is not None:
            changes |= {"type": row.type, "retry_after": _pause(error, row, scope)}
        return NodeFailure(msgspec.structs.replace(error, **changes))


def _request_scope(parameters: Mapping[str, JSON], credential: Mapping[str, JSON], key: str) -> Scope:
    base = credential.get("baseUrl")
    values = {**credential, "baseUrl": base.rstrip("/")} if isinstance(base, str) else credential
    return Scope(input=parameters, vars=values, execution={"idempotencyKey": key})


def _answer_scope(parameters: Mapping[str, JSON], answer: Mapping[str, JSON]) -> Scope:
    return Scope(input=parameters, item=answer)


def _applies(row: ErrorRow, scope: Scope, answer: Mapping[str, JSON]) -> bool:
    if row.status is not None and not is_among(answer["status"], row.status):
        return False
    return row.when is None or is_true(_quietly(row.when, scope))


def _quietly(template: Template, scope: Scope) -> JSON:
    """What the template gives; null if it cannot be made of this answer, which may be anything."""
    try:
        return template.resolve(scope)
    except ExpressionError:
        return None


def _pause(error: RunError, row: ErrorRow, scope: Scope) -> float | None:
    """The longer of the pauses that the header and the row ask for."""
    wishes = [error.retry_after, None if row.retry_after is None else _quietly(row.retry_after, scope)]
    pauses = [float(wish) for wish in wishes if isinstance(wish, int | float) and wish >= 0]
    return max(pauses, default=None) if row.type is ErrorType.TRANSIENT else None


def _decoded(body: str | None) -> JSON:
    try:
        return msgspec.json.decode(body or "null")
    except msgspec.DecodeError:
        return body


def without_nulls(written: JSON, made: JSON) -> JSON:
    """What was made without the fields that are null; what an expression gave is left as it is."""
    if isinstance(written, dict) and isinstance(made, dict):
        return {name: without_nulls(written[name], value) for name, value in made.items() if value is not None}
    if isinstance(written, list) and isinstance(made, list):
        return [without_nulls(part, value) for part, value in zip(written, made, strict=True)]
    return made


def with_defaults(schema: Mapping[str, JSON], given: Mapping[str, JSON]) -> dict[str, JSON]:
    """What was given, and the defaults of the schema for what was not; null counts as not given where it may be."""
    properties: Mapping[str, JSON] = schema.get("properties", {})
    kept = {name: value for name, value in given.items() if value is not None or name not in properties}
    return {name: part["default"] for name, part in properties.items() if "default" in part} | kept
