"""`ropewalk init`: an example project to change, or a package with node types."""

import re
from importlib.resources import files
from pathlib import Path
from typing import Final

import click

from ropewalk.core.errors import Conflict, InvalidInput

FILES: Final = ("README.md", "order.yaml", "nodes.py", "ropewalk.toml", "workflow.schema.json", "tests/test_order.py")
# The files of a package, and where each goes.
PLUGIN: Final = {
    "README.md": "README.md",
    "pyproject.toml": "pyproject.toml",
    "nodes.py.in": "src/MODULE/nodes.py",
    "customer.yaml": "src/MODULE/customer.yaml",
    "test_nodes.py.in": "tests/test_nodes.py",
}
SOURCE: Final = "template"
_PACKAGE: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?", re.ASCII)


@click.command()
@click.argument("directory", default=".", metavar="[DIR]", type=click.Path(file_okay=False))
@click.option("--plugin", metavar="NAME", help="Make a package of this name with node types of your own instead.")
def init(directory: str, plugin: str | None) -> int:
    """Make an example project.

    Nothing that is there already is touched. A package with node types is made in DIR/NAME.
    """
    if plugin is not None:
        return _make_plugin(Path(directory), plugin)
    _write(Path(directory), {name: _template(name) for name in FILES})
    print(f"\nNext: {'' if directory == '.' else f'cd {directory} && '}ropewalk run order.yaml")
    return 0


def _make_plugin(directory: Path, name: str) -> int:
    if not _PACKAGE.fullmatch(name):
        raise InvalidInput(f"{name!r} is no name for a package; write it like acme-crm")
    module = name.replace("-", "_").lower()

    def filled(text: str) -> str:
        return text.replace("MODULE", module).replace("NAME", name)

    made = {filled(place): filled(_template(f"plugin/{source}")) for source, place in PLUGIN.items()}
    folder = directory / name
    _write(folder, {**made, f"src/{module}/__init__.py": f'"""Node types of {name}."""\n'})
    print(f"\nNext: cd {folder} && pip install -e . && pytest && ropewalk nodes")
    return 0


def _template(name: str) -> str:
    return files("ropewalk.cli").joinpath(SOURCE, name).read_text(encoding="utf-8")


def _write(folder: Path, made: dict[str, str]) -> None:
    """Writes files that are not there yet, or none of them."""
    there = [name for name in made if (folder / name).exists()]
    if there:
        raise Conflict(f"{folder / there[0]} is there already: choose another directory")
    for name, text in made.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
        print(folder / name)
