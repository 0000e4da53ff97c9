"""What calls something outside: servers, mail, databases, files, language models."""

import json
from typing import Any

from ropewalk.importing.n8n.flows import Flow, braces
from ropewalk.importing.n8n.javascript import Untranslatable
from ropewalk.importing.n8n.reading import Node, whole
from ropewalk.importing.n8n.table import Desk, Made, Out, credential_name, translates

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_LISTS = "if the answer is a list, n8n makes an item of each element; here it stays one value"


@translates("httpRequest")
def http(desk: Desk) -> Made:
    method = str(desk.get("method", default=desk.get("requestMethod", default="GET")))
    if method not in _METHODS:
        raise Untranslatable(f"the method {method!r} is not sent here")
    asked: dict[str, Any] = {"method": method, "url": desk.text("url")}
    _add(asked, "query", _pairs(desk, "Query", "queryParameters", "queryParametersUi"))
    _add(asked, "headers", _pairs(desk, "Headers", "headerParameters", "headerParametersUi"))
    if desk.get("sendBody") is True or desk.source.version < 3:
        asked |= _body(desk)
    _options(desk, asked)
    made = desk.node("http.request", asked, reaches=True)
    options = _object(_object(desk.get("options")).get("response")).get("response")
    if _object(options).get("fullResponse") is True:
        desk.differs("the status of the answer is called `status`, not `statusCode`")
        return Made([made], {0: desk.each()})
    if asked.get("responseType") == "file":
        return Made([made], {0: desk.each(".body", file=".body")})
    if asked.get("responseType") != "text":
        desk.differs(_LISTS)
    return Made([made], {0: desk.each(".body")})


def _object(found: Any) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}


def _add(asked: dict[str, Any], name: str, value: Any) -> None:
    if value:
        asked[name] = value


def _pairs(desk: Desk, what: str, new: str, old: str) -> Any:
    """Names and values of a query, of headers or of a body, of any version."""
    if desk.source.version >= 3 and desk.get(f"send{what}") is not True:
        return {}
    kind = what.removesuffix("s")
    if desk.get(f"specify{what}") == "json" or desk.get("jsonParameters") is True:
        given = desk.get(f"json{what}", default=desk.get(f"{kind.lower()}ParametersJson", default="{}"))
        return _json(desk, given)
    rows = desk.rows(new, "parameters") or desk.rows(old, "parameter")
    return {
        str(row.get("name", "")): desk.translator.value(_plain(row.get("value"))) for row in rows if row.get("name")
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool) else ""


def _json(desk: Desk, given: Any) -> Any:
    """A parameter that is JSON, as text or as an expression."""
    if isinstance(given, str) and not given.startswith("="):
        try:
            return desk.translator.value(json.loads(given or "{}"))
        except ValueError:
            raise Untranslatable("a text that should be JSON is none") from None
    if not isinstance(given, str):
        return desk.translator.value(given)
    written = desk.translator.value(given)
    if written.startswith("{{") and written.count("{{") == 1 and written.endswith("}}"):
        return written
    # A text with expressions in it is read once they are filled in.
    return braces(f"json_decode({desk.translator.expression(given)})")


def _body(desk: Desk) -> dict[str, Any]:
    kind = str(desk.get("contentType", default="json"))
    if kind == "raw":
        content = str(desk.get("rawContentType", default="text/plain"))
        return {"text": desk.text("body"), "headers": {"Content-Type": content}} if content else {}
    if kind not in ("json", "form-urlencoded"):
        raise Untranslatable(f"a body of the kind {kind!r} is put together by hand: see `multipart` and `file`")
    is_json = desk.get("specifyBody") == "json" or desk.get("jsonParameters") is True
    if is_json:
        given = desk.get("jsonBody", default=desk.get("bodyParametersJson", default="{}"))
        body = _json(desk, given)
    else:
        rows = desk.rows("bodyParameters", "parameters") or desk.rows("bodyParametersUi", "parameter")
        body = {str(row["name"]): desk.translator.value(row.get("value")) for row in rows if row.get("name")}
    if not body:
        return {}
    return {"form": body} if kind == "form-urlencoded" and isinstance(body, dict) else {"body": body}


def _options(desk: Desk, asked: dict[str, Any]) -> None:
    options = _object(desk.get("options"))
    if isinstance(timeout := options.get("timeout"), int | float) and not isinstance(timeout, bool):
        asked["timeout"] = f"{whole(timeout, 1, 3_600_000, 60_000)}ms"
    answer = _object(_object(options.get("response")).get("response"))
    match answer.get("responseFormat"):
        case "text":
            asked["responseType"] = "text"
        case "json":
            asked["responseType"] = "json"
        case "file":
            asked["responseType"] = "file"
            desk.differs("the file is a value of the answer, under `body`")
    if answer.get("neverError") is True:
        asked["expectStatus"] = "100-599"
    for name, what in (("pagination", "pages"), ("batching", "batches"), ("proxy", "a proxy")):
        if options.get(name):
            desk.differs(f"its setting for {what} is left out")
    if options.get("allowUnauthorizedCerts") is True:
        desk.differs("certificates are always checked")


@translates("graphql")
def graphql(desk: Desk) -> Made:
    body: dict[str, Any] = {"query": desk.text("query")}
    if variables := desk.get("variables"):
        body["variables"] = _json(desk, variables)
    asked = {"method": "POST", "url": desk.text("endpoint"), "body": body}
    return Made([desk.node("http.request", asked, reaches=True)], {0: desk.each(".body")})


@translates("emailSend")
def email(desk: Desk) -> Made:
    asked: dict[str, Any] = {"to": desk.text("toEmail"), "subject": desk.text("subject")}
    _add(asked, "from", desk.text("fromEmail"))
    for name in ("cc", "bcc"):
        _add(asked, name, desk.text("options", f"{name}Email") or desk.text(f"{name}Email"))
    _add(asked, "text", desk.text("text") or desk.text("message") * (desk.get("emailFormat") == "text"))
    _add(asked, "html", desk.text("html"))
    if not asked.keys() & {"text", "html"}:
        asked["text"] = ""
    if desk.get("attachments") or desk.get("options", "attachments"):
        asked["attachments"] = [braces(desk.file)]
    if desk.source.credentials and not desk.types["email.send"].credentials:
        desk.differs("the mail server is that of the settings")
    return Made([desk.node("email.send", asked, reaches=True)], {0: desk.each()})


@translates("postgres", "mySql", "sqlite")
def sql(desk: Desk) -> Made:
    operation = str(desk.get("operation", default="insert"))
    if operation == "executeQuery":
        query = desk.get("query", default="")
        if not isinstance(query, str) or "{{" in query:
            raise Untranslatable("its SQL is put together of expressions: bind them as parameters of sql.query")
        asked: dict[str, Any] = {"query": query.removeprefix("=")}
        if given := desk.get("options", "queryReplacement"):
            asked["parameters"] = [desk.translator.value(given)]
            desk.differs("the values of the query are one parameter: give each its own")
        return Made([desk.node("sql.query", asked, reaches=True)], {0: desk.lists(".rows")})
    if operation != "insert":
        raise Untranslatable(f"the operation {operation!r} is to be written as SQL")
    table = desk.get("table")
    name = table.get("value") if isinstance(table, dict) else table
    asked = {"table": str(name), "rows": braces(desk.flow.items())}
    desk.differs("every field of an item is a column")
    return Made([desk.node("sql.insert", asked, per_item=False, reaches=True)], {0: desk.passed()})


@translates("openAi", "chainLlm", "agent")
def chat(desk: Desk) -> Made:
    """A question to a language model, by itself or by the model that hangs on it."""
    if desk.sub_nodes.get("ai_tool"):
        raise Untranslatable("its tools are to be written as workflows: see `tools` of llm.chat")
    model = next(iter(desk.sub_nodes.get("ai_languageModel", [])), None)
    asked: dict[str, Any] = {"model": _model(desk, model), **_question(desk)}
    if desk.sub_nodes.get("ai_memory") or desk.sub_nodes.get("ai_outputParser"):
        desk.differs("its memory and the parser of its answer are left out")
    made = desk.node("llm.chat", asked, reaches=True)
    if model is not None and model.credentials:
        made["credentials"] = credential_name(next(iter(model.credentials.values())))
        desk.differs(f"it needs a credential {made['credentials']!r}")
    return Made([made], {0: _answer(desk)})


def _answer(desk: Desk) -> Out:
    """The answer, where the node of n8n has it."""
    written = {"agent": "{{output: {0}}}", "openAi": "{{message: {{content: {0}}}}}"}.get(desk.source.kind)
    if written is None:
        return desk.each()
    if desk.flow.is_many:
        desk.differs("the answer of each item is its `text`")
        return desk.each()
    return Out(Flow(written.format(f"nodes.{desk.id}.output.text")), desk.id)


def _model(desk: Desk, model: Node | None) -> str:
    parameters = desk.parameters if model is None else model.parameters
    given = parameters.get("model", parameters.get("modelId"))
    name = given.get("value") if isinstance(given, dict) else given
    if not isinstance(name, str) or name.startswith("="):
        raise Untranslatable("its model is not named")
    return name


def _question(desk: Desk) -> dict[str, Any]:
    asked: dict[str, Any] = {}
    rows = desk.rows("messages", "values") or desk.rows("messages", "messageValues")
    texts = [desk.translator.value(str(row.get("content", row.get("message", "")))) for row in rows]
    if given := desk.get("text", default=desk.get("prompt")):
        asked["user"] = desk.translator.value(str(given))
        _add(asked, "system", "\n".join(texts) or desk.text("options", "systemMessage"))
        return asked
    if not texts:
        raise Untranslatable("it asks nothing")
    return {"user": "\n".join(texts)}
