"""Conditions of `if`, `switch` and `filter`, as one expression that is true or false."""

from typing import Any

from ropewalk.importing.n8n.expressions import RE2, Translator
from ropewalk.importing.n8n.javascript import Untranslatable

_EQUALS = {
    "equals": "{0} == {1}", "equal": "{0} == {1}", "notEquals": "{0} != {1}", "notEqual": "{0} != {1}",
    "contains": "{1} in {0}", "notContains": "{1} not in {0}",
    "startsWith": "starts_with({0}, {1})", "endsWith": "ends_with({0}, {1})",
    "notStartsWith": "not starts_with({0}, {1})", "notEndsWith": "not ends_with({0}, {1})",
    "regex": "matches({0}, {1})", "notRegex": "not matches({0}, {1})",
    "gt": "{0} > {1}", "larger": "{0} > {1}", "after": "{0} > {1}",
    "gte": "{0} >= {1}", "largerEqual": "{0} >= {1}", "afterOrEquals": "{0} >= {1}",
    "lt": "{0} < {1}", "smaller": "{0} < {1}", "before": "{0} < {1}",
    "lte": "{0} <= {1}", "smallerEqual": "{0} <= {1}", "beforeOrEquals": "{0} <= {1}",
    "exists": "{0} != null", "notExists": "{0} == null",
    "empty": "not {0}", "isEmpty": "not {0}", "notEmpty": "boolean({0})", "isNotEmpty": "boolean({0})",
    "true": "{0} == true", "false": "{0} == false",
    "lengthEquals": "length({0}) == {1}", "lengthNotEquals": "length({0}) != {1}",
    "lengthGt": "length({0}) > {1}", "lengthGte": "length({0}) >= {1}",
    "lengthLt": "length({0}) < {1}", "lengthLte": "length({0}) <= {1}",
}  # fmt: skip
_OF_TEXT = ("startsWith", "endsWith", "notStartsWith", "notEndsWith", "regex", "notRegex")
_ALONE = ("exists", "notExists", "empty", "isEmpty", "notEmpty", "isNotEmpty", "true", "false")


def condition(given: Any, translator: Translator, *, combine: Any = None) -> str:
    """The expression of all conditions of a node, of any version."""
    if not isinstance(given, dict) or not given:
        raise Untranslatable("there are no conditions")
    if isinstance(given.get("conditions"), list):
        rows = [_row(each, given, translator) for each in given["conditions"] if isinstance(each, dict)]
        combine = given.get("combinator")
    else:
        rows = [
            _old_row(str(kind), each, translator)
            for kind, found in given.items()
            for each in (found if isinstance(found, list) else ())
            if isinstance(each, dict)
        ]
    if not rows:
        raise Untranslatable("there are no conditions")
    return (" or " if combine in ("or", "any") else " and ").join(f"({row})" for row in rows)


def _row(row: dict[str, Any], whole: dict[str, Any], translator: Translator) -> str:
    operator = row.get("operator")
    if not isinstance(operator, dict):
        raise Untranslatable("a condition has no operator")
    options = whole.get("options")
    ignores_case = isinstance(options, dict) and options.get("caseSensitive") is False
    kind, name = str(operator.get("type")), str(operator.get("operation"))
    return _written(kind, name, row.get("leftValue"), row.get("rightValue"), translator, ignores_case=ignores_case)


def _old_row(kind: str, row: dict[str, Any], translator: Translator) -> str:
    default = "after" if kind == "dateTime" else "smaller" if kind == "number" else "equal"
    name = str(row.get("operation", default))
    return _written(kind, name, row.get("value1"), row.get("value2"), translator, ignores_case=False)


def _written(kind: str, name: str, left: Any, right: Any, translator: Translator, *, ignores_case: bool) -> str:
    if name not in _EQUALS:
        raise Untranslatable(f"the condition {name!r} has no equal here")
    if name in ("regex", "notRegex"):
        translator.note(RE2)
    sides = [translator.expression(left)]
    if name not in _ALONE:
        sides.append(translator.expression(_typed(kind, right)))
    if kind in ("dateTime",) and name not in _ALONE:
        sides = [f"epoch({side})" for side in sides]
    elif kind == "string" and (ignores_case or name in _OF_TEXT) and name not in _ALONE:
        sides = [f"lower(text({side}))" if ignores_case else f"text({side})" for side in sides]
    return _EQUALS[name].format(*sides)


def _typed(kind: str, value: Any) -> Any:
    """What n8n keeps as a text though it is a number or a flag."""
    if not isinstance(value, str) or value.startswith("="):
        return value
    if kind == "number":
        try:
            number = float(value)
        except ValueError:
            return value
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    if kind == "boolean" and value in ("true", "false"):
        return value == "true"
    return value
