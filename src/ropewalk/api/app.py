"""The app: every noun's routes, all of them authorized and refused in the same way."""

from fastapi import FastAPI

from ropewalk.api import openapi
from ropewalk.api.backend import Backend
from ropewalk.api.doors import middleware
from ropewalk.api.nouns import (
    acl,
    activity,
    approvals,
    breakers,
    credential_types,
    credentials,
    dead_letters,
    definitions,
    events,
    execution_bulk,
    execution_lists,
    executions,
    expressions,
    files,
    first_api,
    health,
    hooks,
    keys,
    leases,
    members,
    metrics,
    node_types,
    queue,
    runs,
    sessions,
    triggers,
    verbs,
    workers,
    workspaces,
)
from ropewalk.api.shapes import problems
from ropewalk.api.streaming import streams

PREFIX = "/api/v1"
NOUNS = (
    acl, activity, approvals, breakers, credential_types, credentials, execution_bulk, definitions, dead_letters,
    events, execution_lists, executions, expressions, files, keys, leases, members, node_types, openapi, queue, runs,
    sessions, streams, triggers, verbs, workers, workspaces,
)  # fmt: skip


def create_app(backend: Backend, version: str) -> FastAPI:
    """The HTTP API on this backend; its requests are counted if the backend has metrics."""
    app = assemble(version)
    app.state.backend = backend
    leases.open_to_runners(backend)
    return app


def create_health_app(backend: Backend, version: str) -> FastAPI:
    """What a worker answers: its health and its metrics, with the same authorization, and nothing else."""
    app = _bare(version)
    for each in (health.routes, metrics.routes):
        each.install(app)
    middleware.install(app)
    app.state.backend = backend
    return app


def assemble(version: str) -> FastAPI:
    """The routes without anything behind them: enough to describe the API."""
    app = _bare(version)
    # First: routes are tried one after the other, and deliveries come in crowds.
    app.router.routes.extend(hooks.routes())
    for noun in NOUNS:
        noun.routes.install(app, PREFIX)
    for others in (first_api.routes, streams.seed_routes, health.routes, metrics.routes):
        others.install(app)
    openapi.install(app, (*NOUNS, health, metrics, first_api))
    middleware.install(app)
    return app


def _bare(version: str) -> middleware.GuardedApp:
    """An app without routes, whose errors are answered as problems."""
    app = middleware.GuardedApp(
        title="Ropewalk",
        version=version,
        summary="A durable workflow engine.",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
        # Our own telemetry is by operation and execution; FastAPI's would look for a subscriber at every request.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    problems.install(app)
    return app
