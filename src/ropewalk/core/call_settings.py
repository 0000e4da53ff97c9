"""What people say about breakers and rate limits, in a configuration or of a workspace; refused with the field."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ropewalk.core.breaker import BreakerPolicies, BreakerPolicy, BreakerRule
from ropewalk.core.canonical import Path
from ropewalk.core.duration import SECOND, format_duration, parse_duration
from ropewalk.core.errors import InvalidInput, Problem
from ropewalk.core.rate_limit import FASTEST, LONGEST_PER, MOST_CALLS, SHORTEST_PER, RateLimit, is_too_fast
from ropewalk.core.target import PATTERN_IN_WORDS, is_host_pattern

MOST_LIMITS: Final = 1_000
MOST_HOSTS: Final = 100
CALLS_A_SECOND: Final = 1_000
"""More calls to one target are never counted on: a breaker that needs more does not open."""
LIMIT_NAME: Final = r"[A-Za-z][A-Za-z0-9_-]{0,63}"
LIMIT_NAME_IN_WORDS: Final = "a letter, then letters, digits, _ or -, 64 at most"
_CAPITAL: Final = re.compile(r"(?<=[a-z])[A-Z]")
Spans = Mapping[str, tuple[float, float]]
"""From where to where the numbers of a breaker may go, by name."""


# Breakers


def breaker_policies(general: Mapping[str, Any], rules: Sequence[Mapping[str, Any]], spans: Spans) -> BreakerPolicies:
    """The policies of the numbers that hold in general (checked already), and of rules that differ from them."""
    problems: list[Problem] = []
    policy = _policy(general, ("breaker",), problems)
    made = [_rule(rule, general, spans, ("breaker", "rules", i), problems) for i, rule in enumerate(rules)]
    if problems:
        raise InvalidInput(problems)
    return BreakerPolicies(policy, tuple(made))


def _policy(numbers: Mapping[str, Any], path: Path, problems: list[Problem]) -> BreakerPolicy:
    needed, window = numbers["minimum_calls"], numbers["window"]
    if needed > CALLS_A_SECOND * window:
        problems.append(
            Problem(
                (*path, "minimum_calls"),
                f"{needed:,} calls in {window:g} s are more than {CALLS_A_SECOND:,} a second, so the breaker would "
                "never open: lower it, or widen the window",
            )
        )
    return BreakerPolicy(
        minimum_calls=needed,
        failure_share=numbers["failure_rate"] / 100,
        window=round(window * SECOND),
        cooldown=round(numbers["cooldown"] * SECOND),
        probes=numbers["probes"],
        successes=numbers["successes"],
    )


def _rule(rule: Mapping[str, Any], general: Mapping[str, Any], spans: Spans, path: Path,
          problems: list[Problem]) -> BreakerRule:  # fmt: skip
    before = len(problems)
    rule = {_CAPITAL.sub(lambda letter: f"_{letter[0].lower()}", str(name)): value for name, value in rule.items()}
    known = ("type", "host", *spans)
    problems += [Problem((*path, name), f"is no field of a rule; it may have {', '.join(known)}")
                 for name in rule if name not in known]  # fmt: skip
    if rule.get("type") is None and rule.get("host") is None:
        problems.append(Problem(path, "must say which targets it is for: `type`, `host` or both"))
    for name, is_good, wanted in (("type", _is_name, "the name of a node type"), ("host", _is_host, PATTERN_IN_WORDS)):
        if name in rule and not is_good(rule[name]):
            problems.append(Problem((*path, name), f"must be {wanted}"))
    for name, (low, high) in spans.items():
        if name in rule and not _is_between(rule[name], low, high, is_whole=isinstance(general[name], int)):
            problems.append(Problem((*path, name), f"must be a number from {low:g} to {high:,g}"))
    if len(problems) > before:
        return BreakerRule(BreakerPolicy())
    own = {name: value for name, value in rule.items() if name in spans}
    return BreakerRule(_policy({**general, **own}, path, problems), rule.get("type"), rule.get("host"))


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_host(value: Any) -> bool:
    return isinstance(value, str) and is_host_pattern(value)


def _is_between(value: Any, low: float, high: float, *, is_whole: bool) -> bool:
    is_number = isinstance(value, int if is_whole else int | float) and not isinstance(value, bool)
    return is_number and low <= value <= high


# Rate limits


def rate_limits(given: Any, path: Path = ("rateLimits",)) -> dict[str, RateLimit]:
    """Rate limits by name, as a table of them says; InvalidInput names everything that is wrong with it."""
    if not isinstance(given, Mapping):
        raise InvalidInput([Problem(path, "must be a table of limits by name, like {shop: {limit: 10, per: 1s}}")])
    if len(given) > MOST_LIMITS:
        raise InvalidInput([Problem(path, f"has {len(given)} limits, at most {MOST_LIMITS} are allowed")])
    problems: list[Problem] = []
    found = {str(name): _rate_limit(name, each, (*path, str(name)), problems) for name, each in given.items()}
    if problems:
        raise InvalidInput(problems)
    return found


def _rate_limit(name: Any, given: Any, path: Path, problems: list[Problem]) -> RateLimit:
    if not isinstance(name, str) or not re.fullmatch(LIMIT_NAME, name):
        problems.append(Problem(path, f"the name of a limit is {LIMIT_NAME_IN_WORDS}"))
    if not isinstance(given, Mapping):
        problems.append(Problem(path, "must have `limit` and `per`, like {limit: 10, per: 1s}"))
        return RateLimit(1, SECOND)
    problems += [Problem((*path, str(field)), "is no field of a rate limit; it may have limit, per and hosts")
                 for field in given if field not in ("limit", "per", "hosts")]  # fmt: skip
    return _checked_limit(given, path, problems)


def _checked_limit(given: Mapping[str, Any], path: Path, problems: list[Problem]) -> RateLimit:
    before = len(problems)
    limit, hosts = given.get("limit"), given.get("hosts", ())
    if not _is_between(limit, 1, MOST_CALLS, is_whole=True):
        problems.append(Problem((*path, "limit"), f"must be a whole number from 1 to {MOST_CALLS:,}"))
    per = _parsed(given, path, problems)
    if not isinstance(hosts, list | tuple) or len(hosts) > MOST_HOSTS or not all(map(_is_host, hosts)):
        problems.append(Problem((*path, "hosts"), f"must be a list of at most {MOST_HOSTS}, each {PATTERN_IN_WORDS}"))
    if len(problems) > before:
        return RateLimit(1, SECOND)
    assert isinstance(limit, int), "checked above"
    if is_too_fast(limit, per):
        why = f"{limit:,} calls in {format_duration(per)} are more than {FASTEST:,} a second: lower it, or leave it out"
        problems.append(Problem((*path, "limit"), why))
    return RateLimit(limit, per, tuple(hosts))


def _parsed(given: Mapping[str, Any], path: Path, problems: list[Problem]) -> int:
    try:
        if "per" not in given:
            raise ValueError("is missing: write it like 1s or 1m")
        return parse_duration(given["per"], SHORTEST_PER, LONGEST_PER)
    except ValueError as error:
        problems.append(Problem((*path, "per"), str(error)))
        return SECOND


def written(limits: Mapping[str, RateLimit]) -> dict[str, Any]:
    """The limits as people write them."""
    return {name: _written(each) for name, each in limits.items()}


def _written(rate: RateLimit) -> dict[str, Any]:
    hosts: dict[str, Any] = {"hosts": list(rate.hosts)} if rate.hosts else {}
    return {"limit": rate.limit, "per": format_duration(rate.per), **hosts}
