"""Renders `docs/definition.md`: every field of a workflow document and every built-in node type, from their tables."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ropewalk.cli.views.node_types import field_in_words, kind_in_words
from ropewalk.core.definition.fields import CACHE, COMPENSATE, EDGE, NODE, REPEAT, RETRY, TOP

_INTRODUCTION: Final = """\
# Workflow documents

YAML or JSON, at most 4 MiB. Everything wrong with a document is said at once, with its place; nothing of a refused one
is kept. The same as JSON Schema: [workflow.schema.json](workflow.schema.json), which `ropewalk init` writes into a new
project so that editors complete and check the fields. Texts may hold [expressions](expressions.md), and
values may be [files](files.md). Durations are like `30s`, `5m`, `1h30m`, `2d`, `PT30S`, or a number of seconds.

An edge is taken when its source succeeded by the port that `on` names (any, if it names none); `on: error` is taken
when it failed, and may say [which failures](#errors-by-kind) it is for.

A `wait`, a `delay` or a `subworkflow` that came to what it waited for takes the port `arrived`, an
`approval` takes `approved` or `rejected`; `on: expired` is taken when the `timeout` of one of these four passed before
the answer came. Without such an edge it fails with TIMEOUT then. A node starts as soon as all its own edges are decided
and one of them was taken; if none was, it is skipped. An edge whose port its source can never take is refused; a node
with `forEach` has none but `error`, and the ports of a `switch` are those of its cases and its default, unless an
expression names them; none of them may be `error`.

The `filter` of a `wait` for an event is an expression without braces, like `item.orderId == input.orderId`: `item` is
the event's payload, and `input`, `vars`, `nodes` and the other names of the node are there by value, as they were when
the wait began (16 KiB of what the filter reads at most). A filter that is made of text with `{{ }}` is refused.
"""

_RULES: Final = """\
## What counts for a limit

One rule for `maxParallel` and for the `concurrency` of a map: a node or an item is *under way* from the start of its
first attempt until its outcome is final. Retries, the time between them, waits (for time, a person, a signal, an event)
and children are part of that. A map takes no place itself, its items do, and for a moment the evaluation of its list.
What has a place goes on without asking for another. So a node that waits keeps others of its execution waiting if the
limit says so, and a workflow in which one node waits for what another does needs room for both. An execution that only
waits for places gives its slot back.

## What a failure stops

`onFailure` says what becomes of the rest at the first failure that no `on: error` edge and no tolerance handles.

| | `continue` | `stop` | `cancel` |
|---|---|---|---|
| attempts that run, also of items | finish | finish | are told to stop; a result within 10 s counts |
| retries | are made | are not made any more | are not made any more |
| nodes that are ready, or become ready | start | never start: CANCELLED | never start: CANCELLED |
| items of a map that have not started | start | never start; the map is CANCELLED | never start; the map is CANCELLED |
| waits, and runs held by a breaker or a rate limit | go on | end at once: CANCELLED | end at once: CANCELLED |
| children | go on | are cancelled, and their end is waited for | are cancelled; their end is waited for 10 s |
| the execution's `timeout` | goes on | goes on, and makes it TIMEOUT | does not count any more |
| it ends FAILED | when all is done | when nothing runs any more | the same, after 10 s at the latest |

Nodes behind the failure stay where they are (BLOCKED); a retry gives the CANCELLED ones their turn.

## Errors by kind

An edge `on: error` may say which failures it is for:

```yaml
edges:
  - { from: pay, to: soldOut, on: error, when: "{{ error.status == 409 }}" }
  - { from: pay, to: askLater, on: error, when: "{{ error.type == 'TIMEOUT' }}" }
  - { from: pay, to: alert, on: error }
```

The error edges of a node are tried in the order of the document when it has failed for good. The first that fits is
taken and the others are not; edges with the same `when` are taken together, and so are those without one, which fit
always. If none fits, the failure is not handled: it is a dead letter, and what comes behind it stays BLOCKED. `error`
has `type`, `message`, `attempts`, `status` and `body` (what a server answered), `detail`, and `child` (how the child of
a `subworkflow` ended: `FAILED`, `TIMEOUT` or `CANCELLED`). `input`, `vars`, `execution` and the nodes before this one
are there too. For a map `error` is that of the map, with the type and the status of its first failure.

`retry.on` names the errors that are tried again, by type and by status: `[TRANSIENT, TIMEOUT]` is the default,
`[TIMEOUT]` is less, `[TRANSIENT, TIMEOUT, "status:409"]` is more, and PERMANENT errors are tried again if they are
named so. `retry.when` is an expression over `error` and `attempt` (the number of the attempt that failed) that must be
true too; without an `on` it decides alone, of PERMANENT errors as well. `maxAttempts` holds in any case. Not asked are
an attempt that was lost with its worker, which is always tried again, and an error CIRCUIT_OPEN or a wait that expired,
which never are.

These expressions are evaluated once and briefly: those of one failure may take 2,000 steps together, and look at no
value that is too large for the log. One that takes more, or cannot be evaluated (`error.status + 1` without a status),
does not fit; the event `NodeFailed` (or `ItemFailed`) lists what was wrong as `faults`, and `ropewalk explain` says it.
The event's `edge` is the place of the edge that was taken.

## Undoing, and what comes last

```yaml
nodes:
  - { id: reserve, type: http.request, with: { url: "{{ vars.shop }}/reservations", method: POST },
      compensate: { type: http.request,
                    with: { url: "{{ vars.shop }}/reservations/{{ nodes.reserve.output.body.id }}", method: DELETE } } }
  - { id: pay, type: http.request, with: { url: "{{ vars.bank }}/charges", method: POST } }
edges: [{ from: reserve, to: pay }]
finally:
  - { id: report, type: log, with: { message: "{{ execution.outcome }} {{ execution.failed }}" } }
```

When nothing of the graph is ready, running or waiting any more, or when a stopped execution is quiet, its outcome is
decided and recorded. Then `compensate` undoes what has succeeded, the last success first, and then the nodes of
`finally` run in the order of the document. One of these nodes is under way at a time. The execution is RUNNING
meanwhile, needs its slot, and ends when the last of them has its outcome. They are recorded, retried and given up like
any node; the node that undoes `pay` is called `pay.compensate`. If one fails for good, it is a dead letter, the next
one has its turn, and the outcome stands.

| the outcome | what is undone | `finally` | the time for all of it |
|---|---|---|---|
| SUCCESS | nothing: these nodes are SKIPPED | runs | that of its nodes |
| FAILED | every node that is SUCCESS and has `compensate` | runs | that of its nodes |
| CANCELLED, TIMEOUT | the same | runs | 1 h in all; what is left then is CANCELLED |
| CANCELLED, or FAILED in the queue, before the first start | nothing | does not run | |

What undoes a node sees the output of that node and of all nodes before it; a node of `finally` sees every node of the
graph, and those of `finally` before it. Both see `execution.outcome`, `execution.error` (why it failed) and
`execution.failed`: a list of `{node, error}`, one for each failure that nothing has handled. `output` is evaluated
before, and does not see them. No edge leads to these nodes, and they cannot have `forEach`. A map is undone once, as a
whole, if it has succeeded: `nodes.<id>.output` is its list. What a rerun has carried over is not undone by it, for
another execution did that.

| asked for | while it is being closed | after the end, if something was undone | if nothing was undone |
|---|---|---|---|
| cancel | refused; changes nothing if the outcome is CANCELLED | refused | refused |
| pause | refused | refused | refused |
| retry, requeue, fix | refused | refused: it is over for good | as ever; `finally` runs again at the next end |
| giving up a run by hand | the next node has its turn | | |
| rerun | refused | carries over all but what was undone, and what is behind that | carries over as ever |

A dead letter of such a node cannot be requeued or fixed by itself; it counts as requeued when the execution is
reopened. A child that its parent cancels undoes what it did before it is CANCELLED; the parent waits 10 s for that. A
parent that is retried calls another child in the place of one that has undone what it did.

## Repeating a node

```yaml
  - id: pages
    type: subworkflow
    with: { workflow: one-page, input: { cursor: "{{ last.next }}", page: "{{ index }}" } }
    repeat: { until: "{{ last.next == null }}", delay: 2s, max: 500 }
```

A node with `repeat` runs round after round. After each round its condition is asked: with `until` it is over when that
is true, with `while` when it is not, so there is one round at least. In the condition `last` is what the round gave and
`index` its number, from 0; in `with`, which is evaluated for each round, `last` is what the round *before* gave (null
in the first) and `index` the number of this one. What a round has to know of all rounds before it, each hands on. The
output of the node is that of its last round, and `nodes.<id>.rounds` says how many there were. To repeat several nodes,
make them a workflow and repeat the `subworkflow`: each round is a child of its own.

Each round is recorded (`RoundEnded`) and is a run of its own; attempts are counted on from round to round, and each
round has all of its `retry` and its own idempotency key. After a crash the execution goes on in the round it was in,
and so does a retry or a requeue after a failure; a fix ends the node. Between two rounds the node keeps its place
(`maxParallel`), a pause or a cancel holds, and a `delay` of more than 10 s needs no slot.

After `max` rounds (100, if it is not said) the node takes the port `exhausted`, if an edge names that; else it fails
with PERMANENT, and `retry` is not asked. A condition that cannot be evaluated, takes more than 2,000 steps, or looks at
a large value that a child or another worker has brought, fails the node too. A wait that expires ends the node in
any case. `repeat` is not for nodes with `forEach` or `cache`.

## What becomes of items that fail

A map (a node with `forEach`) succeeds when no more items have failed for good than `failureTolerance` says; its output
then has null for each that failed, and `nodes.<id>.errors` lists them. `onItemFailure` says what one failure too many
does, `deadLetters` which failures a person can requeue or fix.

| | `onItemFailure: stop` | `onItemFailure: continue` |
|---|---|---|
| within the tolerance | the map goes on | the map goes on |
| one failure too many | no new item starts, those under way finish | every item is tried |
| then the map is | FAILED, the rest of its items CANCELLED | FAILED, every item has its outcome |
| requeue or fix of an item | also starts the items that were cancelled | leaves what is done alone |

| failed items are | `deadLetters: beyondTolerance` | `deadLetters: always` |
|---|---|---|
| tolerated | in `errors` only | dead letters, as soon as they fail |
| of a map that fails | all dead letters | all dead letters |
| of a map that fails and has an `on: error` edge | handled: no dead letters | handled: no dead letters |
| tolerated, of a map that has an `on: error` edge | in `errors` only | dead letters, when the map succeeds |
| children (`subworkflow`) that are tolerated | final | mended when the child is retried, requeued or fixed |

A tolerated failure that is a dead letter is *mended* by requeue or fix, one or many. Its map stays SUCCESS; the item
leaves `errors` when it is requeued, and its output takes the place of the null when it has one. If it fails again, it
is in `errors` and a dead letter again. The execution does not end before what is being mended has its outcome, and
one that has ended SUCCESS is reopened for it, runs that item alone, and ends SUCCESS with its output evaluated afresh.
A node or an item that starts later sees what was mended; one that has started keeps what it was given, and what is done
does not run again: to run it on the completed list, rerun from it (`ropewalk executions rerun`). An execution that was
cancelled, or that was called by another which has its output, stays as it is.

## Rate limits

`rateLimit: shop` on a node names a limit of the workspace (`PATCH /api/v1/workspaces/{id}` with `rateLimits`) or of
the [configuration](configuration.md); the workspace's stands in the place of a configured one of the same name. A
name that is not known is refused when the workflow is saved; where the limit goes later, runs wait until there is one
again. A limit with `hosts` also counts every call to these, as far as the node type tells whom it calls:
`http.request` (by its address, not by where redirects lead) and `email.send` do. A call keeps all limits that it
falls under. Runs of external runners keep the limit that their node names. A result that comes from the `cache` needs
no slot; every attempt needs its own.

## Children

A `subworkflow` whose child fails or times out fails too, and has no dead letter of its own. If the node itself has a
`retry`, another child is started for each further attempt, with its backoff; a child that a person cancelled is not
replaced. With `cache`, the output of a child that ended well is used again for the same inputs and no child is started,
whichever version is published meanwhile; outputs over 64 KiB are not kept, as with any node. Waits for time, people,
signals and events are never cached. A child may use the `concurrencyKey` that its parent or another ancestor holds, one
at a time: the holders of a key are always one line of descent, and siblings come one after the other.

## Nodes that speak to executions

| type | does, and its ports | a repeated attempt |
|---|---|---|
| `workflow.start` | starts a workflow and goes on at once, with the id of the execution | gets the id of the first |
| `event.emit` | publishes an event, as `POST /api/v1/events` does | publishes nothing, gets the count of the first |
| `execution.signal` | signals an execution: `told`; `over` if it has ended or keeps 1,000 signals | tells nothing |
| `execution.cancel` | cancels an execution: `cancelled`; `over` if it has ended in another way | finds it cancelled |

So each is done once, also if a worker dies after it and before the result is recorded. Starts and events are remembered
for a day, signals for as long as their execution lives, the latest 1,000 of them. What is started is no child: it has a
slot and an end of its own, and no parent waits for it. Executions that start each other come to an end: one that is 16
starts and children deep starts no other.

A node speaks with the rights of its execution: to executions of its own workspace and, if the execution is bounded by a
share ([security](security.md)), to those of workflows that are shared. The audit log names it as `execution:ID`.

"""

_TRIGGERS: Final = """\
## Triggers

`triggers` start a workflow by itself: schedules (`cron`, `every`), webhooks, events and queues (NATS
JetStream), fired by `ropewalk up` ([triggers.md](triggers.md)). Every field is in
[workflow.schema.json](workflow.schema.json).
"""

_TYPES: Final = """\
## Node types

What a node can be, with the fields of each type: [nodes.md](nodes.md), or `ropewalk nodes`.
"""


def render() -> str:
    """The whole page."""
    tables = (
        *(("The document", TOP.schema()), ("A node", NODE.schema()), ("An edge", EDGE.schema())),
        *(("`retry` of a node", RETRY.schema()), ("`repeat` of a node", REPEAT.schema())),
        *(("`cache` of a node", CACHE.schema()), ("`compensate` of a node", COMPENSATE.schema())),
    )
    fields = [line for title, schema in tables for line in (f"## {title}\n", *_table(schema), "")]
    return "\n".join([_INTRODUCTION, *fields, _RULES + _TRIGGERS, _TYPES]).rstrip() + "\n"


def _table(schema: Mapping[str, Any]) -> Iterator[str]:
    yield "| field | | what it is |"
    yield "|---|---|---|"
    for name, field in schema["properties"].items():
        yield f"| `{name}` | {kind_in_words(field, schema)} | {field_in_words(name, field, schema)} |"


if __name__ == "__main__":
    print(render(), end="")
