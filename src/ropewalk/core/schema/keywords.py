"""The keywords of JSON Schema: what each demands of a value."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from ropewalk.core.canonical import JSON, canonical, kind_of, shown, step
from ropewalk.core.errors import Problem
from ropewalk.core.schema.rules import FORMATS, SMALL_PATTERN, TYPES, compile_pattern, definition_named
from ropewalk.core.schema.walk import Rule, TooMuch, Walk


def _type(walk: Walk, expected: JSON, value: JSON, _: dict[str, JSON]) -> None:
    if isinstance(expected, str) and TYPES[expected].holds(value):
        return
    names = expected if isinstance(expected, list) else [expected]
    if not any(TYPES[name].holds(value) for name in names):
        words = " or ".join(TYPES[name].words for name in names)
        walk.refuse(f"must be {words}, not {kind_of(value)}")


def _enum(walk: Walk, expected: JSON, value: JSON, _: dict[str, JSON]) -> None:
    if not any(walk.equal(value, allowed) for allowed in expected):
        listed = ", ".join(map(walk.written, expected[:10])) + (", …" if len(expected) > 10 else "")
        walk.refuse(f"must be one of {listed}")


def _const(walk: Walk, expected: JSON, value: JSON, _: dict[str, JSON]) -> None:
    if not walk.equal(value, expected):
        walk.refuse(f"must be {walk.written(expected)}")


def _is_number(value: JSON) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _bound(fits: Callable[[Any, Any], bool], words: str) -> Rule:
    def rule(walk: Walk, expected: JSON, value: JSON, _: dict[str, JSON]) -> None:
        if _is_number(value) and not fits(value, expected):
            walk.refuse(f"must be {words} {expected}")

    return rule


def _is_multiple(value: float, unit: float) -> bool:
    # Through text, since 0.3 is a multiple of 0.1 for an author who wrote both; integers may be too long for text.
    parts = [Fraction(number) if isinstance(number, int) else Fraction(repr(number)) for number in (value, unit)]
    return parts[0] % parts[1] == 0


def _multiple_of(walk: Walk, expected: JSON, value: JSON, _: dict[str, JSON]) -> None:
    walk.charge(5)
    is_finite = _is_number(value) and abs(value) < float("inf")
    if is_finite and not _is_multiple(value, expected):
        walk.refuse(f"must be a multiple of {expected}")


def _size(kind: type[Any], fits: Callable[[int, int], bool], words: str) -> Rule:
    def rule(walk: Walk, expected: JSON, value: JSON, _: dict[str, JSON]) -> None:
        size = len(value) if isinstance(value, kind) else expected
        if not fits(size, expected):
            walk.refuse(f"must have {words.format(expected)}, not {size}")

    return rule


def _pattern(walk: Walk, expected: JSON, value: JSON, _: dict[str, JSON]) -> None:
    if isinstance(value, str) and not _matches(walk, expected, value):
        walk.refuse(f"must match the pattern {shown(expected)}")


def _matches(walk: Walk, pattern: str, text: str) -> bool:
    program = compile_pattern(pattern)
    # At worst a search takes some nanoseconds for each instruction of the pattern and character of the text.
    size = program.programsize
    walk.charge(1 + (len(text) * (1 if size <= SMALL_PATTERN else size) >> 7))
    try:
        return program.search(text) is not None
    except UnicodeEncodeError:
        return False


def _format(walk: Walk, expected: JSON, value: JSON, _: dict[str, JSON]) -> None:
    form = FORMATS.get(expected)
    walk.charge(2)
    if form is not None and isinstance(value, str) and not form.holds(value):
        walk.refuse(f"{shown(value)} must be {form.words}")


def _required(walk: Walk, expected: JSON, value: JSON, _: dict[str, JSON]) -> None:
    if isinstance(value, dict):
        walk.charge(len(expected))
        for name in expected:
            if name not in value:
                walk.refuse(f"needs the field {shown(name)}")


def _dependent_required(walk: Walk, expected: JSON, value: JSON, schema: dict[str, JSON]) -> None:
    if isinstance(value, dict):
        walk.charge(len(expected))
        for name, needed in expected.items():
            if name in value:
                _required(walk, needed, value, schema)


def _properties(walk: Walk, expected: JSON, value: JSON, _: dict[str, JSON]) -> None:
    if isinstance(value, dict):
        fewer = expected if len(expected) < len(value) else value
        walk.charge(len(fewer))
        for name in fewer:
            if name in value and name in expected:
                walk.enter(name, expected[name], value[name])


def _pattern_properties(walk: Walk, expected: JSON, value: JSON, _: dict[str, JSON]) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            for pattern, schema in expected.items():
                if _matches(walk, pattern, str(name)):
                    walk.enter(name, schema, inner)


def _additional_properties(walk: Walk, expected: JSON, value: JSON, schema: dict[str, JSON]) -> None:
    if not isinstance(value, dict):
        return
    known = schema.get("properties", {})
    patterns = schema.get("patternProperties", {})
    walk.charge(len(value))
    for name, inner in value.items():
        if name in known or any(_matches(walk, pattern, str(name)) for pattern in patterns):
            continue
        if expected is False:
            walk.refuse(f"unknown field{_known_fields(known)}", step(name))
        else:
            walk.enter(name, expected, inner)


def _known_fields(known: dict[str, JSON]) -> str:
    return f"; known are {', '.join(map(step, list(known)[:30]))}" if known else ""


def _property_names(walk: Walk, expected: JSON, value: JSON, _: dict[str, JSON]) -> None:
    if isinstance(value, dict):
        for name in value:
            problems, _sure = walk.trial(expected, name)
            if problems:
                walk.refuse(f"the key {problems[0].message}", step(name))


def _prefix_items(walk: Walk, expected: JSON, value: JSON, _: dict[str, JSON]) -> None:
    if isinstance(value, list):
        for place, (schema, inner) in enumerate(zip(expected, value, strict=False)):
            walk.enter(place, schema, inner)


def _items(walk: Walk, expected: JSON, value: JSON, schema: dict[str, JSON]) -> None:
    if isinstance(value, list):
        for place in range(len(schema.get("prefixItems", ())), len(value)):
            walk.enter(place, expected, value[place])


def _contains(walk: Walk, expected: JSON, value: JSON, schema: dict[str, JSON]) -> None:
    if not isinstance(value, list):
        return
    trials = [walk.trial(expected, inner) for inner in value]
    possible = sum(not problems for problems, _ in trials)
    certain = sum(not problems and is_sure for problems, is_sure in trials)
    if possible < schema.get("minContains", 1):
        walk.refuse("has too few elements of the kind it must contain")
    if certain > schema.get("maxContains", len(value)):
        walk.refuse("has too many elements of the kind it may contain")


def _unique_items(walk: Walk, expected: JSON, value: JSON, _: dict[str, JSON]) -> None:
    if not expected or not isinstance(value, list):
        return
    walk.charge(len(value))
    first: dict[object, int] = {}
    for place, inner in enumerate(value):
        if walk.certainty is None or not isinstance(inner, str | list | dict):
            earlier = first.setdefault(_identity(walk, inner), place)
            if earlier != place:
                walk.refuse(f"is the same as element {earlier}", place)


def _identity(walk: Walk, value: JSON) -> object:
    """Equal for equal values; one hash instead of comparing each with each."""
    if isinstance(value, list | dict):
        try:
            text = canonical(value)
        except ValueError as error:
            raise TooMuch("cannot be compared") from error
        walk.charge(len(text) >> 7)
        return text
    return isinstance(value, bool), value


def _all_of(walk: Walk, expected: JSON, value: JSON, _: dict[str, JSON]) -> None:
    for schema in expected:
        walk.visit(schema, value)


def _any_of(walk: Walk, expected: JSON, value: JSON, _: dict[str, JSON]) -> None:
    refusals = []
    for schema in expected:
        problems, _sure = walk.trial(schema, value)
        if not problems:
            return
        refusals.append(problems[0])
    _refuse_all(walk, refusals)


def _refuse_all(walk: Walk, refusals: list[Problem]) -> None:
    """None of several forms fits: say why not, each reason once."""
    reasons = dict.fromkeys(_reason(problem, len(walk.path)) for problem in refusals)
    walk.refuse("; or ".join(list(reasons)[:5]))


def _reason(problem: Problem, depth: int) -> str:
    return str(Problem(problem.path[depth:], problem.message)) if len(problem.path) > depth else problem.message


def _one_of(walk: Walk, expected: JSON, value: JSON, _: dict[str, JSON]) -> None:
    trials = [walk.trial(form, value) for form in expected]
    if all(problems for problems, _ in trials):
        _refuse_all(walk, [problems[0] for problems, _ in trials])
    elif sum(not problems and is_sure for problems, is_sure in trials) > 1:
        walk.refuse("fits several of the forms of which it must fit exactly one")


def _not(walk: Walk, expected: JSON, value: JSON, _: dict[str, JSON]) -> None:
    problems, is_sure = walk.trial(expected, value)
    if not problems and is_sure:
        walk.refuse("has a form that is not allowed")


def _if(walk: Walk, expected: JSON, value: JSON, schema: dict[str, JSON]) -> None:
    problems, is_sure = walk.trial(expected, value)
    branch = "else" if problems else "then"
    if branch in schema and (problems or is_sure):
        walk.visit(schema[branch], value)


def _ref(walk: Walk, expected: JSON, value: JSON, _: dict[str, JSON]) -> None:
    target = walk.root if expected == "#" else walk.root.get("$defs", {}).get(definition_named(expected))
    if target is None:
        raise TooMuch(f"has a schema that refers to {shown(expected)}, which does not exist")
    walk.follow(target, value)


def _at_least(have: Any, need: Any) -> bool:
    return bool(have >= need)


def _at_most(have: Any, need: Any) -> bool:
    return bool(have <= need)


RULES: dict[str, Rule] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "minimum": _bound(_at_least, "at least"),
    "maximum": _bound(_at_most, "at most"),
    "exclusiveMinimum": _bound(lambda have, need: bool(have > need), "more than"),
    "exclusiveMaximum": _bound(lambda have, need: bool(have < need), "less than"),
    "multipleOf": _multiple_of,
    "minLength": _size(str, _at_least, "at least {} characters"),
    "maxLength": _size(str, _at_most, "at most {} characters"),
    "pattern": _pattern,
    "format": _format,
    "required": _required,
    "dependentRequired": _dependent_required,
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "propertyNames": _property_names,
    "minProperties": _size(dict, _at_least, "at least {} fields"),
    "maxProperties": _size(dict, _at_most, "at most {} fields"),
    "prefixItems": _prefix_items,
    "items": _items,
    "contains": _contains,
    "minItems": _size(list, _at_least, "at least {} elements"),
    "maxItems": _size(list, _at_most, "at most {} elements"),
    "uniqueItems": _unique_items,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "$ref": _ref,
}

# What can be said about a text of which only the kind is known.
TEXT_RULES = {name: RULES[name] for name in ("type", "allOf", "anyOf", "oneOf", "not", "if", "$ref")}
