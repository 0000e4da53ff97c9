"""The page authors read, made from the table the compiler uses, so that it cannot be wrong about a function."""

import json
from itertools import chain
from typing import Final

from ropewalk.core.expression.functions import TOPICS
from ropewalk.core.expression.functions.regexes import MAX_PATTERN, MAX_SUBJECT
from ropewalk.core.expression.functions.table import Function, Topic
from ropewalk.core.expression.run import (
    MAX_DEPTH,
    MAX_INTEGER,
    MAX_ROOM,
    MAX_SOURCE,
    MAX_STEPS,
    MAX_TREE_STEPS,
    MAX_VALUE,
)

_LANGUAGE: Final = """\
# Expressions

A text in a definition may hold expressions: `{{ … }}`. If the text is one expression, with nothing but white space
around it, it stands for the expression's own value: a number stays a number, a list a list. In any other text the
values are written into it: text as it is, null as nothing, a whole number without a point (`3`, also for `3.0`),
everything else as compact JSON. What comes out is never looked through for expressions again. Keys of objects are
taken as they are. For a literal `{{` write `{{ "{{" }}`.

## Names

| name | what it is |
|---|---|
| `input` | what the execution was started with |
| `vars` | the workflow's variables |
| `nodes.<id>.output` | what a node before this one gave; null if it was skipped or failed |
| `nodes.<id>.state` | how it ended |
| `nodes.<id>.error` | if it failed: `{type, message, attempts, status, detail, body, child}`; `child`: how that ended |
| `nodes.<id>.errors` | the failed items of a map: `{type, message, attempts, status, index}` each |
| `nodes.<id>.rounds` | how many rounds a node with `repeat` has made |
| `last` | in a node with `repeat`: what the round before gave; in its condition, what the round gave |
| `error` | in `when` of an error edge or of a retry: the failure, as above |
| `attempt` | in `when` of a retry: the number of the attempt that failed |
| `item`, `index` | inside `forEach`: the item and its place, from 0; with `repeat`, `index` is the round |
| `execution` | `{id, startedAt, workflow}` (a name); in `compensate` and `finally` also `outcome`, `error`, `failed` |
| `now` | when this node started, as RFC 3339 text; a retry sees the same. In nodes only |
| `workspace`, `env` | as they were when the execution was accepted; an error in what is bounded by a share |

Of an error, `detail` is the traceback of the node's code, or what the node says itself; `status` and `body` are what a
server answered, the body as text and no more than its first 4 KiB. Each is null where there is none: behind an error
edge of an `http.request`, `{{ nodes.pay.error.status == 409 }}` tells a conflict. A map that failed has only the first
three of them.

## Language

| write | to get |
|---|---|
| `input.lines[0].sku`, `input["x y"]`, `input.lines[-1]` | a value inside another; null where there is none |
| `null true false 12 -1.5 1e3 "text" 'text'` | literals; `\\n \\t \\" \\' \\\\ \\u00e9` in text |
| `[1, 2]`, `{sku: "a", "x y": 2}` | lists and objects |
| `a == b`, `a != b` | whether two values are the same JSON; 1 is 1.0, true is not 1 |
| `a < b`, `<=`, `>`, `>=` | order of two numbers or two texts |
| `a in b`, `a not in b` | whether a list has an item, an object a key, a text a part |
| `a and b`, `a or b`, `not a` | true or false; null, false, 0 and everything empty count as false |
| `a + b` | the sum of numbers; texts or lists joined |
| `a - b`, `a * b`, `a / b`, `a % b` | numbers; a quotient of integers is an integer where it is exact |
| `a ?? b` | `a`, or `b` if that is null |
| `a ?: b` | `a`, or `b` if that is null, false, 0 or empty |
| `a ? b : c` | `b` if `a` holds, else `c` |
| `x \\| upper`, `x \\| round(2)` | a call: what stands before the pipe is the first argument |
| `map(input.lines, x => x.price * 2)` | a rule: `x` names each item in turn |
| `reduce(input.lines, (sum, x) => sum + x.price, 0)` | a rule of two names |

From loosest to tightest: `|`, `? :`, `or`, `and`, `not`, comparisons and `in`, `?? ?:`, `+ -`, `* / %`, unary `-`,
lookup. Calculating with null is an error: give it a default, `(input.count ?? 0) + 1`.
"""


def render() -> str:
    """The whole page."""
    return "\n".join([_LANGUAGE, *chain.from_iterable(map(_topic, TOPICS)), _limits()])


def _topic(topic: Topic) -> list[str]:
    head = [f"## {topic.title}", "", "| function | what it gives | example |", "|---|---|---|"]
    return [*head, *map(_row, topic.functions), ""]


def _row(function: Function) -> str:
    result = json.dumps(function.result, ensure_ascii=False)
    return f"| {_code(function.signature)} | {_cell(function.summary)} | {_code(function.example)} → {_code(result)} |"


def _code(text: str) -> str:
    return f"`{_cell(text)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _limits() -> str:
    return f"""\
## Limits

Evaluating always ends, with a value or with an error that says where. An expression has at most {MAX_SOURCE:,}
characters, {MAX_DEPTH} levels of nesting and {MAX_STEPS:,} steps: a step is a small operation; rules pay for each
item, bulk operations by size. Where an expression looks at large values it has more steps: enough to do everything it
says once with each of these values, so that one pass over a list always fits, and a list compared with itself, each
item with each, does not. All expressions of a node's `with` have {MAX_TREE_STEPS:,} steps together. A value an
expression makes has at most {MAX_VALUE >> 20} MiB, all of them together {MAX_ROOM >> 20} MiB, reckoned as 8 bytes for
each value plus its text; only a bare path may give more. Integers go up
to ±2**{MAX_INTEGER.bit_length() - 1}. Regular expressions are RE2's: patterns up to {MAX_PATTERN} characters, texts up
to {MAX_SUBJECT >> 10} KiB. An instant is an RFC 3339 text or seconds since 1970; `now` is one.
"""
