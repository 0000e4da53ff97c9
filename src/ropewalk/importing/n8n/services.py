"""Services that have a type of their own: one function each."""

from typing import Any

from ropewalk.importing.n8n.flows import braces
from ropewalk.importing.n8n.javascript import Untranslatable
from ropewalk.importing.n8n.table import Desk, Made, translates


def _named(desk: Desk, *path: str) -> str:
    """What a field names that is chosen from a list, or written."""
    given = desk.get(*path, default="")
    found = given.get("value", "") if isinstance(given, dict) else given
    return str(desk.translator.value(str(found)))


def _only(desk: Desk, resource: str, *operations: str) -> str:
    """Which of these operations on this resource it is; refuses every other."""
    found, done = desk.get("resource", default=resource), str(desk.get("operation", default=operations[0]))
    if found == resource and done in operations:
        return done
    raise Untranslatable(f"the operation {done!r} on {found!r} has no equal here: see http.request")


def _made(desk: Desk, type_: str, asked: dict[str, Any]) -> Made:
    return Made([desk.node(type_, asked, reaches=True)], {0: desk.each()})


@translates("slack")
def slack(desk: Desk) -> Made:
    _only(desk, "message", "post")
    channel = _named(desk, "channelId") or _named(desk, "channel")
    desk.differs("its output is {ts, channel}")
    return _made(desk, "slack.send", {"channel": channel, "text": desk.text("text")})


@translates("telegram")
def telegram(desk: Desk) -> Made:
    _only(desk, "message", "sendMessage")
    desk.differs("its output is {message, chat}")
    return _made(desk, "telegram.send", {"chat": desk.text("chatId"), "text": desk.text("text")})


@translates("discord")
def discord(desk: Desk) -> Made:
    _only(desk, "message", "send")
    desk.differs("its output is {message, channel}")
    return _made(desk, "discord.send", {"channel": _named(desk, "channelId"), "text": desk.text("content")})


@translates("github")
def github(desk: Desk) -> Made:
    _only(desk, "issue", "create")
    repository = f"{_named(desk, 'owner')}/{_named(desk, 'repository')}"
    desk.differs("its output is {number, url, id}; labels and assignees are left out")
    return _made(
        desk, "github.issue", {"repository": repository, "title": desk.text("title"), "body": desk.text("body")}
    )


@translates("googleSheets")
def sheets(desk: Desk) -> Made:
    done = _only(desk, "sheet", "read", "append")
    asked: dict[str, Any] = {"spreadsheet": _named(desk, "documentId"), "range": _named(desk, "sheetName")}
    if done == "append":
        asked["rows"] = braces(f"map({desk.flow.items()}, x => values(x))")
        desk.differs("the values of an item are a row, in their order: the names of the columns are not looked at")
        made = desk.node("google.sheets.append", asked, per_item=False, reaches=True)
        return Made([made], {0: desk.passed()})
    desk.differs("its rows are lists of cells, the names of the columns in the first")
    return Made([desk.node("google.sheets.read", asked, reaches=True)], {0: desk.lists(".rows")})
