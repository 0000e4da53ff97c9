"""The app: every noun's routes under one gate, with one way to say no."""

from fastapi import FastAPI

from ropewalk.api import executions, health, openapi, problems
from ropewalk.api.office import Office

PREFIX = "/api/v1"
NOUNS = (executions,)


def create_app(office: Office, version: str) -> FastAPI:
    """The HTTP API of what is in this office."""
    app = FastAPI(
        title="Ropewalk",
        version=version,
        summary="A durable workflow engine.",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        separate_input_output_schemas=False,
    )
    app.state.office = office
    problems.install(app)
    for noun in NOUNS:
        app.include_router(noun.routes.router, prefix=PREFIX)
    app.include_router(health.routes.router)
    openapi.install(app)
    return app
