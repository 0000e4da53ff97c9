"""A Ropewalk somewhere else, spoken to over HTTP.

with ropewalk.Client("https://ropewalk.example", token) as client:
    print(client.start("refund", {"orderId": "7"}).result())

What is said to a server is written down once, as talks that yield their next step (`talking`) and know nothing of
sockets or loops. Two lines carry talks out: one blocks (`blocking`), one is awaited (`awaiting`). The nouns have their
verbs in files of their own; `verbs` makes a method of a talk, plain on a `Client` and awaitable on an `AsyncClient`.
"""

from ropewalk.client.awaiting import AsyncClient, AsyncExecution, AsyncLease, AsyncRunner
from ropewalk.client.blocking import Client, Execution, Lease, Runner

__all__ = ["AsyncClient", "AsyncExecution", "AsyncLease", "AsyncRunner", "Client", "Execution", "Lease", "Runner"]
