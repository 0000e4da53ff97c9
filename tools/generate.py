"""Writes the generated documents, or with --check says which of them are stale."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from tools import (
    api_reference,
    cli_reference,
    configuration_reference,
    credential_reference,
    definition_reference,
    expression_reference,
    node_reference,
    state_diagrams,
    workflow_schema,
)

ROOT = Path(__file__).parent.parent
GENERATED: dict[str, Callable[[], str]] = {
    "docs/openapi.json": api_reference.render_openapi,
    "docs/api.md": api_reference.render,
    "docs/cli.md": cli_reference.render,
    "docs/workflow.schema.json": workflow_schema.render,
    "src/ropewalk/cli/template/workflow.schema.json": workflow_schema.render,  # what `ropewalk init` gives editors
    "docs/definition.md": definition_reference.render,
    "docs/nodes.md": node_reference.render,
    "docs/credentials.md": credential_reference.render,
    "docs/expressions.md": expression_reference.render,
    "docs/states.md": state_diagrams.render,
    "docs/configuration.md": configuration_reference.render,
}


def stale() -> list[str]:
    """The documents that differ from what the code says."""
    return [name for name, render in GENERATED.items() if _read(ROOT / name) != render()]


def _read(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if something is stale")
    arguments = parser.parse_args()
    old = stale()
    if arguments.check:
        for name in old:
            print(f"{name} is stale: run make generate")
        return 1 if old else 0
    for name in old:
        (ROOT / name).write_text(GENERATED[name]())
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
