"""How the source is built, and whether it keeps its rules: `python -m tools.house [RULE …]`.

The rules; if none is named, all of them are held:

- shorter: `src` has fewer lines than at the commit that `--against` names (every line of Python and SQL counts)
- modules: no module of `src` has more than 350 lines
- collaborators: no module of `engines/native` has more than eight. Its collaborators are the other modules of
  `engines/native` that it imports, also only for types, and those that it reaches through the engine: in
  `engine.memory` or `self._engine.memory`, the module of the class that the engine keeps under that name; for an
  attribute or method of the engine itself, the module `engine`
- sleeps: tests await signals, and sleep in one place only (`tools/sleeps.py` says where sleeping is the point)

The exit code is 1 if a rule that is held is broken; `--report` only prints.
"""

import argparse
import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from tools import sleeps

ROOT: Final = Path(__file__).parent.parent
NATIVE: Final = "src/ropewalk/engines/native"
PACKAGE: Final = "ropewalk.engines.native"
ENGINE: Final = "engine"
MOST_LINES: Final = 350
MOST_COLLABORATORS: Final = 8
RULES: Final = ("shorter", "modules", "collaborators", "sleeps")
Sources = Mapping[str, str]
"""Texts by their paths."""


def sources(folder: Path) -> Sources:
    """The Python and SQL of `src` as it lies there."""
    paths = sorted(path for path in (folder / "src").rglob("*") if path.suffix in (".py", ".sql"))
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}


def lines_at(commit: str) -> int:
    """How many lines the same files had at a commit."""
    listed = _git("grep", "--count", "-I", "", commit, "--", "src/*.py", "src/*.sql")
    return sum(int(line.rpartition(":")[2]) for line in listed.splitlines())


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def lengths(found: Sources) -> dict[str, int]:
    return {path: len(text.splitlines()) for path, text in found.items()}


def too_long(found: Sources) -> dict[str, int]:
    """The modules with more lines than a module may have."""
    return {path: count for path, count in lengths(found).items() if path.endswith(".py") and count > MOST_LINES}


def collaborators(found: Sources) -> dict[str, list[str]]:
    """Each module of the native engine with those it works with."""
    trees = {_module(path): ast.parse(text) for path, text in found.items() if _is_native(path)}
    parts = _parts(trees[ENGINE]) if ENGINE in trees else {}
    return {
        module: sorted({*_imported(tree, trees), *_reached(tree, parts)} - {module}) for module, tree in trees.items()
    }


def _is_native(path: str) -> bool:
    return path.startswith(f"{NATIVE}/") and path.endswith(".py") and not path.endswith("__init__.py")


def _module(path: str) -> str:
    return path.removeprefix(f"{NATIVE}/").removesuffix(".py").replace("/", ".")


def _imported(tree: ast.Module, modules: Iterable[str]) -> Iterator[str]:
    """The modules of the native engine that are named by imports, wherever these are written."""
    known = set(modules)
    for node in ast.walk(tree):
        names = [each.name for each in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [node.module, *(f"{node.module}.{name}" for name in names)]
        yield from (name for each in names if (name := each.removeprefix(f"{PACKAGE}.")) != each and name in known)


def _parts(engine: ast.Module) -> dict[str, str]:
    """The modules of what the engine keeps, by the names under which it does: `self.memory = Memory(…)`."""
    homes = {
        name.asname or name.name: node.module.removeprefix(f"{PACKAGE}.")
        for node in ast.walk(engine)
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith(f"{PACKAGE}.")
        for name in node.names
    }
    return {name: homes[made] for name, value in _assigned(engine) if (made := _made(value)) in homes}


def _made(value: ast.expr) -> str:
    """The class that is called first in an expression, if one is."""
    calls = (each.func for each in ast.walk(value) if isinstance(each, ast.Call))
    return next((each.id for each in calls if isinstance(each, ast.Name)), "")


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """What is put into which attribute of `self`, also several at once."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                several = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                pairs = zip(target.elts, node.value.elts, strict=True) if several else [(target, node.value)]  # type: ignore[attr-defined]  # both are tuples then
                yield from ((each.attr, value) for each, value in pairs if isinstance(each, ast.Attribute))


def _reached(tree: ast.Module, parts: Mapping[str, str]) -> Iterator[str]:
    """The modules of what is reached through the engine."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_engine(node.value):
            yield parts.get(node.attr, ENGINE)


def _is_engine(node: ast.expr) -> bool:
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name.removeprefix("_") == ENGINE


def shorter(found: Sources, commit: str | None) -> Iterator[str]:
    """Says how long `src` is; yields what is broken."""
    now = sum(lengths(found).values())
    if commit is None:
        print(f"src: {now:,} lines")
        return
    before = lines_at(commit)
    print(f"src: {now:,} lines, {before:,} at {commit}: {now - before:+,}")
    if now >= before:
        yield f"src has {now - before:,} lines more than at {commit}"


def modules(found: Sources) -> Iterator[str]:
    """Says which modules are long; yields what is broken."""
    long = too_long(found)
    print(f"modules over {MOST_LINES} lines: {len(long) or 'none'}")
    for path, count in sorted(long.items(), key=lambda item: -item[1]):
        print(f"  {count:4} {path}")
        yield f"{path} has {count} lines, {MOST_LINES} are allowed"


def worked_with(found: Sources) -> Iterator[str]:
    """Says how many collaborators each module of the native engine has; yields what is broken."""
    print(f"collaborators in {NATIVE} (at most {MOST_COLLABORATORS}):")
    for module, others in sorted(collaborators(found).items(), key=lambda item: (-len(item[1]), item[0])):
        print(f"  {len(others):4} {module}: {', '.join(others)}")
        if len(others) > MOST_COLLABORATORS:
            yield f"{module} has {len(others)} collaborators, {MOST_COLLABORATORS} are allowed"


def slept() -> Iterator[str]:
    """Says how often tests sleep; yields what is broken."""
    lines = sleeps.found(ROOT)
    print(f"sleeps in tests: {sum(map(len, lines.values()))}, in {len(lines)} files")
    yield from sleeps.refused(lines)


def broken(rule: str, commit: str | None) -> Iterator[str]:
    """Says how it stands with a rule; yields what is broken."""
    match rule:
        case "shorter":
            return shorter(sources(ROOT), commit)
        case "modules":
            return modules(sources(ROOT))
        case "collaborators":
            return worked_with(sources(ROOT))
        case _:
            return slept()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.house", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rules", nargs="*", metavar="RULE", help=f"which rules are held: {', '.join(RULES)}")
    parser.add_argument("--against", metavar="COMMIT", help="compare the lines of src with this commit")
    parser.add_argument("--report", action="store_true", help="only print; the exit code is 0 though a rule is broken")
    options = parser.parse_args()
    if unknown := set(options.rules) - set(RULES):
        parser.error(f"there is no rule {', '.join(sorted(unknown))}; the rules are {', '.join(RULES)}")
    wrong = [each for rule in options.rules or RULES for each in broken(rule, options.against)]
    print("".join(f"broken: {each}\n" for each in wrong if not options.report), file=sys.stderr, end="")
    return 1 if wrong and not options.report else 0


if __name__ == "__main__":
    sys.exit(main())
