"""Ways that part and meet, waits, children, ends."""

from typing import Any

from ropewalk.importing.n8n.conditions import condition
from ropewalk.importing.n8n.expressions import Translator
from ropewalk.importing.n8n.flows import Flow, braces
from ropewalk.importing.n8n.javascript import Untranslatable
from ropewalk.importing.n8n.reading import whole
from ropewalk.importing.n8n.table import Desk, Made, Out, note_text, shown, translates

_UNITS = {"seconds": "s", "minutes": "m", "hours": "h", "days": "d"}


@translates("if")
def branch(desk: Desk) -> Made:
    if not desk.flow.is_many:
        asked = {"condition": braces(desk.translator.checked(_strict(_condition(desk, desk.translator))))}
        said = f"nodes.{desk.id}.output"
        outs = {0: desk.passed("true", f"{said} == true"), 1: desk.passed("false", f"{said} == false")}
        return Made([desk.node("if", asked)], outs)
    held = _condition(desk, desk.rule())
    return _filters(desk, [held, f"not ({held})"])


@translates("filter")
def keep(desk: Desk) -> Made:
    if not desk.flow.is_many:
        asked = {"condition": braces(desk.translator.checked(_strict(_condition(desk, desk.translator))))}
        return Made([desk.node("if", asked)], {0: desk.passed("true", f"nodes.{desk.id}.output == true")})
    return _filters(desk, [_condition(desk, desk.rule())])


def _condition(desk: Desk, translator: Translator) -> str:
    return condition(desk.get("conditions"), translator, combine=desk.get("combineOperation"))


def _strict(held: str) -> str:
    """A condition that is true or false and nothing else."""
    return f"boolean({held})"


def _filters(desk: Desk, conditions: list[str]) -> Made:
    """A filter for each way out: of many items, some may go one way and some another."""
    nodes: list[dict[str, Any]] = []
    outs: dict[int, Out] = {}
    for at, held in enumerate(conditions):
        id_ = desk.id if at == 0 else f"{desk.id}_{at}"
        keep = desk.translator.checked(f"map({desk.flow.value}, x => {_strict(held)})")
        asked = {"items": braces(desk.flow.value), "keep": braces(keep)}
        nodes.append(desk.node("filter", asked, id_=id_, per_item=False))
        outs[at] = Out(Flow(f"nodes.{id_}.output", True, desk.flow.each, id_), id_, "some")
    return Made(nodes, outs, tuple(node["id"] for node in nodes))


@translates("switch")
def switch(desk: Desk) -> Made:
    if desk.get("mode") == "expression":
        return _by_number(desk)
    if desk.get("options", "allMatchingOutputs") is True:
        raise Untranslatable("items go out by every rule that fits; here they go by the first")
    rules = desk.rows("rules", "values") or desk.rows("rules", "rules")
    if not rules:
        raise Untranslatable("there are no rules")
    translator = desk.rule() if desk.flow.is_many else desk.translator
    held = [_rule(desk, rule, translator) for rule in rules]
    outputs = [whole(rule.get("output"), 0, 100, at) if "value2" in rule else at for at, rule in enumerate(rules)]
    rest = _fallback(desk, len(rules))
    return _many_ways(desk, held, outputs, rest) if desk.flow.is_many else _one_way(desk, held, outputs, rest)


def _rule(desk: Desk, rule: dict[str, Any], translator: Translator) -> str:
    if isinstance(rule.get("conditions"), dict):
        return condition(rule["conditions"], translator)
    kind = str(desk.get("dataType", default="number"))
    row = {"value1": desk.get("value1"), "value2": rule.get("value2"), "operation": rule.get("operation", "equal")}
    return condition({kind: [row]}, translator)


def _fallback(desk: Desk, rules: int) -> int | None:
    given = desk.get("options", "fallbackOutput", default=desk.get("fallbackOutput", default="none"))
    if given == "extra":
        return rules
    is_number = isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given < 100
    return int(given) if is_number else None


def _one_way(desk: Desk, held: list[str], outputs: list[int], rest: int | None) -> Made:
    cases = [
        {"port": f"out{output}", "when": braces(desk.translator.checked(_strict(each)))}
        for each, output in zip(held, outputs, strict=True)
    ]
    asked: dict[str, Any] = {"cases": cases, "default": "none" if rest is None else f"out{rest}"}
    ways = sorted({*outputs} | ({rest} if rest is not None else set()))
    return Made([desk.node("switch", asked)], {way: desk.passed(f"out{way}") for way in ways})


def _many_ways(desk: Desk, held: list[str], outputs: list[int], rest: int | None) -> Made:
    ways: dict[int, list[str]] = {}
    for at, (each, output) in enumerate(zip(held, outputs, strict=True)):
        earlier = "".join(f" and not ({before})" for before in held[:at])
        ways.setdefault(output, []).append(f"({each}){earlier}")
    if rest is not None:
        ways.setdefault(rest, []).append(" and ".join(f"not ({each})" for each in held))
    order = sorted(ways)
    made = _filters(desk, [" or ".join(f"({each})" for each in ways[way]) for way in order])
    made.outs = {way: made.outs[at] for at, way in enumerate(order)}
    return made


def _by_number(desk: Desk) -> Made:
    if desk.flow.is_many:
        raise Untranslatable("each item goes its own way, by an expression")
    count = whole(desk.get("numberOutputs"), 1, 100, 4)
    cases = [{"port": f"out{at}", "equals": at} for at in range(count)]
    asked = {"value": braces(desk.translator.expression(desk.get("output"))), "cases": cases, "default": "none"}
    return Made([desk.node("switch", asked)], {at: desk.passed(f"out{at}") for at in range(count)})


@translates("splitInBatches")
def loop(desk: Desk) -> Made:
    """The nodes of a loop are maps over the list, so that the loop itself does nothing."""
    desk.differs("the nodes of the loop are maps: each works on the whole list before the next begins")
    node = {"id": desk.id, "type": "noop", "name": shown(desk.source.name)}
    return Made([node], {0: desk.passed(), 1: desk.passed()})


@translates("noOp")
def nothing(desk: Desk) -> Made:
    return Made([desk.node("noop", {}, per_item=False)], {0: desk.passed()})


@translates("stickyNote")
def sticky(desk: Desk) -> Made:
    text = desk.get("content", default="")
    node = {"id": desk.id, "type": "note", "name": shown(desk.source.name), "with": {"text": note_text(str(text))}}
    return Made([node], {})


@translates("wait")
def wait(desk: Desk) -> Made:
    match desk.get("resume", default="timeInterval"):
        case "timeInterval":
            asked = {"for": _length(desk)}
            return Made([desk.node("delay", asked, per_item=False)], {0: desk.passed("arrived")})
        case "specificTime":
            asked = {"until": desk.text("dateTime")}
            return Made([desk.node("wait", asked, per_item=False)], {0: desk.passed("arrived")})
        case _:
            desk.differs("it waits for a signal named `resume` in the place of a call or a form")
            return Made([desk.node("wait", {"signal": "resume"}, per_item=False)], {0: desk.one(port="arrived")})


def _length(desk: Desk) -> Any:
    amount = desk.get("amount", default=1 if desk.source.version < 1.1 else 5)
    unit = str(desk.get("unit", default="hours" if desk.source.version < 1.1 else "seconds"))
    if unit not in _UNITS:
        raise Untranslatable(f"it waits for {unit}")
    if isinstance(amount, str):
        return f"{braces(desk.translator.expression(amount))}{_UNITS[unit]}"
    return f"{whole(amount, 0, 10**6, 5)}{_UNITS[unit]}"


@translates("executeWorkflow")
def child(desk: Desk) -> Made:
    named = desk.get("workflowId")
    about = named if isinstance(named, dict) else {}
    name = about.get("cachedResultName") or about.get("value") or named
    if desk.get("source", default="database") != "database" or not isinstance(name, str) or name.startswith("="):
        raise Untranslatable("the workflow that it calls is not named")
    desk.differs(f"it calls the workflow {shown(name)!r}: import that one under this name")
    is_each = desk.get("mode") == "each"
    given = f"item{desk.flow.each}" if desk.flow.is_many and is_each else desk.flow.value
    if desk.flow.is_many and not is_each:
        desk.differs("the child gets the list of all items as its input")
    asked = {"workflow": shown(name), "input": braces(given)}
    made = desk.node("subworkflow", asked, per_item=is_each)
    return Made([made], {0: desk.each() if is_each else desk.one()})


@translates("stopAndError")
def stop(desk: Desk) -> Made:
    message = desk.text("errorMessage", default="stopped")
    if desk.get("errorType") == "errorObject":
        message = desk.text("errorObject", default="stopped")
    return Made([desk.node("fail", {"message": message}, per_item=False)], {})


@translates("respondToWebhook")
def respond(desk: Desk) -> Made:
    how = str(desk.get("respondWith", default="firstIncomingItem"))
    asked: dict[str, Any] = {"status": whole(desk.get("options", "responseCode"), 200, 599, 200)}
    rows = desk.rows("options", "responseHeaders", "entries")
    if headers := {str(row.get("name")): desk.translator.value(str(row.get("value", ""))) for row in rows}:
        asked["headers"] = headers
    match how:
        case "text" | "json":
            asked["body"] = desk.text("responseBody")
        case "firstIncomingItem":
            asked["body"] = braces(desk.flow.at("0"))
        case "allIncomingItems":
            asked["body"] = braces(desk.flow.items())
        case "noData":
            pass
        case _:
            raise Untranslatable(f"an answer of the kind {how!r} has no equal here")
    return Made([desk.node("respond", asked, per_item=False)], {0: desk.passed()})
