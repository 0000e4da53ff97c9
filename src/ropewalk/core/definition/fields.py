"""The fields of the workflow document as tables, from which both the check at save and the editors' schema are made."""

from ropewalk.core.call_settings import LIMIT_NAME, LIMIT_NAME_IN_WORDS
from ropewalk.core.definition.kinds import (
    Anything,
    Apart,
    Choice,
    Duration,
    Either,
    Field,
    Free,
    ListOf,
    MapOf,
    Number,
    Parameters,
    Record,
    Share,
    Text,
    Whole,
)
from ropewalk.core.definition.triggers import TRIGGER
from ropewalk.core.duration import MILLISECOND

MOST_ITEMS = 100_000
EXPRESSION_SIZE = 4_096

NODE_ID = r"[A-Za-z][A-Za-z0-9_]{0,63}"

_title = Text(200, r"[^\x00-\x1f\x7f]+", "a line of text")
_prose = Text(10_000)
_expression = Text(EXPRESSION_SIZE)
_node_id = Text(64, NODE_ID, "a letter, then letters, digits or _, 64 at most")
_name = Text(128, r"[A-Za-z0-9_.:/-]+", "a name of letters, digits, _ . : / -")
_port = Text(64, r"[^\x00-\x1f\x7f]+", "a port's name")
_limit = Text(64, LIMIT_NAME, LIMIT_NAME_IN_WORDS)
_positive = Duration(shortest=MILLISECOND)
_kind = Text(16, r"TRANSIENT|TIMEOUT|PERMANENT|status:[1-5](?:[0-9]{2}|xx)", "TRANSIENT, TIMEOUT, PERMANENT, or like "
             "status:409 and status:5xx")  # fmt: skip

RETRY = Record(
    {
        "maxAttempts": Field(Whole(1, 100), "Attempts in all; 1 means no retries. Default 3."),
        "delay": Field(
            Duration(),
            "Wait after the first failure. Default 1s. After the second it is at least 100ms, from the fifth on 1s.",
        ),
        "factor": Field(Number(1, 100), "What the wait is multiplied by after each further failure. Default 2."),
        "maxDelay": Field(Duration(), "The longest wait, before jitter. Default 1m, or the delay if that is longer."),
        "jitter": Field(Number(0, 1), "Random share added to each wait. Default 0.5."),
        "on": Field(
            ListOf(_kind, longest=20),
            "Which errors are retried: TRANSIENT, TIMEOUT, PERMANENT, status:409, status:5xx. "
            "Default TRANSIENT and TIMEOUT; if there is a `when`, any.",
        ),
        "when": Field(_expression, "An expression over error and attempt that must be true for another attempt."),
    }
)

REPEAT = Record(
    {
        "until": Field(_expression, "An expression that is true after the last round; `last` is what the round gave."),
        "while": Field(_expression, "An expression that is true after every round but the last."),
        "delay": Field(Duration(), "The wait between two rounds. Default none."),
        "max": Field(
            Whole(1, MOST_ITEMS), "The most rounds; after them the node fails, or takes `exhausted`. Default 100."
        ),
    }
)

CACHE = Record({"ttl": Field(_positive, "How long a result may be reused in the workspace.", is_required=True)})

CREDENTIALS = Either(str, _name, MapOf(_name, _name, longest=32))

NODE = Record(
    {
        "id": Field(_node_id, "How expressions and edges name the node.", is_required=True),
        "type": Field(Text(128), "The node type that does the work.", is_required=True),
        "name": Field(_title, "What people call the node."),
        "with": Field(Parameters(), "Parameters of the node type; strings may hold {{ expressions }}."),
        "forEach": Field(
            Either(list, Anything(), _expression), "Runs the node once per item of this list or expression."
        ),
        "concurrency": Field(Whole(1, 10_000), "Items of forEach under way at once. Default 20."),
        "failureTolerance": Field(Share(MOST_ITEMS), "Items that may fail: a count, or a share like 10%. Default 0."),
        "onItemFailure": Field(
            Choice("stop", "continue"),
            "Whether a map that has failed starts no further item, or tries every one. Default stop.",
            needs="forEach",
        ),
        "deadLetters": Field(
            Choice("beyondTolerance", "always"),
            "Whether tolerated failures of items are dead letters too, which can be requeued. Default beyondTolerance.",
            needs="forEach",
        ),
        "retry": Field(RETRY, "When and how often a failed attempt is repeated."),
        "repeat": Field(REPEAT, "Runs the node again and again, until or while an expression is true."),
        "timeout": Field(_positive, "The longest an attempt, or a wait, may take. Default 5m; none for waits."),
        "cache": Field(CACHE, "Reuses the result of the same work with the same inputs, also across executions."),
        "rateLimit": Field(_limit, "The rate limit, of the workspace or of the configuration, that its calls keep."),
        "pool": Field(_name, "The pool of runners that takes the node."),
        "credentials": Field(CREDENTIALS, "The credential of the workspace that the node uses, or several by slot."),
        "ui": Field(Free(), "Where and how Studio draws the node; has no effect."),
    }
)

_IN_CLOSING = ("type", "name", "with", "retry", "timeout", "rateLimit", "pool", "credentials")
COMPENSATE = Record({name: NODE.fields[name] for name in _IN_CLOSING})
FINALLY = Record({name: NODE.fields[name] for name in ("id", *_IN_CLOSING, "cache", "ui")})
NODE = Record(
    {
        **NODE.fields,
        "compensate": Field(
            COMPENSATE,
            "What undoes the node if it has succeeded and the execution fails, is cancelled or times out: run in "
            "reverse order of success.",
        ),
    }
)

EDGE = Record(
    {
        "from": Field(_node_id, "The node that comes before.", is_required=True),
        "to": Field(_node_id, "The node that comes after.", is_required=True),
        "on": Field(_port, "The port that must be taken; 'error' when the source fails. Absent: success."),
        "when": Field(
            _expression,
            "With `on: error`, an expression over error that must be true. The error edges of a node are tried in "
            "their order, and the first that fits is taken.",
            needs="on",
        ),
    }
)

# `nodes` and `edges` are lists checked apart: there may be hundreds of thousands, and they have rules between them.
TOP = Record(
    {
        "ropewalk": Field(Whole(1, 1), "The version of this format."),
        "name": Field(_title, "What the workflow is called in its workspace.", is_required=True),
        "description": Field(_prose, "What it is for."),
        "input": Field(Free(), "JSON Schema that the input must fit at start."),
        "vars": Field(Free(), "Named values with defaults; may be overridden at start, read-only after."),
        "output": Field(
            Anything(), "The result; strings may hold {{ expressions }}. Default: the last nodes' outputs."
        ),
        "timeout": Field(_positive, "The longest an execution may take."),
        "onFailure": Field(
            Choice("continue", "stop", "cancel"),
            "Whether other branches go on after an unhandled failure; `cancel` stops running nodes too.",
        ),
        "concurrencyKey": Field(
            _expression,
            "One execution at a time for each value, of 1,000 bytes at most, of this expression over input.",
        ),
        "maxParallel": Field(Whole(1, 100_000), "Nodes and items of maps under way at once in an execution."),
        "nodes": Field(Apart(NODE), "The steps."),
        "edges": Field(Apart(EDGE), "What follows what."),
        "finally": Field(
            Apart(FINALLY), "Nodes that run at the very end, one after the other, with every outcome; without edges."
        ),
        "triggers": Field(ListOf(TRIGGER, longest=100), "What starts it besides a call."),
    }
)
