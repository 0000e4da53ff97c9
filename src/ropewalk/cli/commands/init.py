"""`ropewalk init`: an example project to change."""

from importlib.resources import files
from pathlib import Path
from typing import Final

import click

from ropewalk.core.errors import Conflict

FILES: Final = ("README.md", "order.yaml", "nodes.py", "ropewalk.toml", "workflow.schema.json", "tests/test_order.py")
SOURCE: Final = "template"


@click.command()
@click.argument("directory", default=".", metavar="[DIR]", type=click.Path(file_okay=False))
def init(directory: str) -> int:
    """Make an example project.

    Nothing that is there already is touched.
    """
    folder = Path(directory)
    there = [name for name in FILES if (folder / name).exists()]
    if there:
        raise Conflict(f"{folder / there[0]} is there already: choose another directory")
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(files("ropewalk.cli").joinpath(SOURCE, name).read_text(encoding="utf-8"))
        print(folder / name)
    print(f"\nNext: {'' if directory == '.' else f'cd {directory} && '}ropewalk run order.yaml")
    return 0
