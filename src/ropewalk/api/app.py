"""The app: every noun's routes under one gate, with one way to say no."""

from fastapi import FastAPI

from ropewalk.api import (
    acl,
    activity,
    approvals,
    breakers,
    bulk,
    definitions,
    dlq,
    events,
    execution_lists,
    executions,
    expressions,
    health,
    keys,
    leases,
    members,
    metrics,
    node_types,
    openapi,
    problems,
    queue,
    resources,
    runs,
    sessions,
    stream,
    verbs,
    walls,
    workers,
    workspaces,
)
from ropewalk.api.office import Office

PREFIX = "/api/v1"
NOUNS = (
    acl,
    activity,
    approvals,
    breakers,
    bulk,
    definitions,
    dlq,
    events,
    execution_lists,
    executions,
    expressions,
    keys,
    leases,
    members,
    node_types,
    openapi,
    queue,
    runs,
    sessions,
    stream,
    verbs,
    workers,
    workspaces,
)


def create_app(office: Office, version: str) -> FastAPI:
    """The HTTP API of what is in this office; its requests are counted if figures are kept there."""
    app = assemble(version)
    app.state.office = office
    leases.welcome_runners(office)
    return app


def create_health_app(office: Office, version: str) -> FastAPI:
    """What a worker answers: its health and its figures, behind the same gate, and nothing else."""
    app = _bare(version)
    for each in (health.routes, metrics.routes):
        each.install(app)
    walls.install(app)
    app.state.office = office
    return app


def assemble(version: str) -> FastAPI:
    """The routes without anything behind them: enough to describe the API."""
    app = _bare(version)
    for noun in NOUNS:
        noun.routes.install(app, PREFIX)
    for others in (resources.routes, stream.seed_routes, health.routes, metrics.routes):
        others.install(app)
    openapi.install(app, (*NOUNS, health, metrics, resources))
    walls.install(app)
    return app


def _bare(version: str) -> walls.WalledApp:
    """An app without routes, which says no as ours do."""
    app = walls.WalledApp(
        title="Ropewalk",
        version=version,
        summary="A durable workflow engine.",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
        # Ours are by operation and execution; these would look for somebody who wants them at every request.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    problems.install(app)
    return app
