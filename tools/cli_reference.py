"""The page of all commands, made from the commands themselves."""

import inspect
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

import click

from ropewalk.bench.command import bench as measure
from ropewalk.cli.backend.project import Project, on_store_or_server
from ropewalk.cli.main import EXIT_CODES, SECTIONS, cli

_HEAD: Final = """\
# Commands

Every command, as `ropewalk COMMAND --help` tells it too.

EXECUTION and LETTER may be the beginning or the end of an id, or `last`. JSON values are written out, or come from a
file as `@file`. With `--json` a command answers with one JSON document (streams: one a line) and nothing else; how it
goes is told on stderr.

**In a terminal** tables are as wide as it is: where room is short, messages are cut first, then ids are shown by their
last eight characters and optional columns are left out. Ids in that form, states, names and the commands to type next
are always whole. In a pipe everything is whole, one row a line; what is not read to its end changes no exit code.

**Where.** `--db` names a store: a file, or a PostgreSQL database. With `--server URL`, `--profile NAME`, or
ROPEWALK_SERVER or ROPEWALK_PROFILE in the environment, a server is asked instead, and answers in the same words; it has
the node types then, and executes. `--db` wins over the environment. What needs the store itself (`up`, `worker`,
`check`, `sweep`, `doctor`, `reset-clock`) has no `--server`.

**The token** for a server comes from ROPEWALK_TOKEN, else from what `ropewalk login` has kept: in the keyring, if the
package `keyring` is installed and finds one (`pip install 'ropewalk[keyring]'`), else in
`~/.config/ropewalk/tokens.toml`, which no other user may be able to read. It is never an option: the command lines of a
machine are for everyone to see. It goes over http only to this machine, unless ROPEWALK_ALLOW_HTTP=1 says that is
meant.

**Node types** of a command (`--nodes`, or `nodes` in the configuration) go where its work goes. A process that a
command has started, in the background too, learns them from the next command that brings them, and so does the process
that goes on after it; runs that waited for them go on. `ropewalk up` and Python programs take none: a command that
brings what they lack is refused, and says what to do. Commands that are printed as advice carry `--db`, `--config` and
`--nodes`.

**Lists** show as many as `--limit` says; how many more there are, and the command that shows them, is said on stderr.

**Many** executions are cancelled or retried by the filters of their list, as in
`ropewalk cancel --workflow refund --waiting`: they are counted, a person is asked on the terminal, and then each is
told and named. Without a terminal nothing is done unless `--yes` is said; `--dry-run` only counts.

**Completion.** `ropewalk completion bash|zsh|fish` prints the script that makes a shell complete commands and options;
`ropewalk completion --help` says where each shell looks for it. To try it: `eval "$(ropewalk completion bash)"`.

**Ctrl-C** while `run`, `rerun`, `replay` or `resume` shows how it goes pauses the execution durably, here and on a
server; a second one leaves at once.
"""


def render() -> str:
    """The whole page."""
    parts = [_HEAD, _table(_shared().values()), _exit_codes()]
    for section, commands in SECTIONS.items():
        parts.append(f"## {section}\n")
        for name in commands:
            parts += _described(name)
    return "\n".join(parts).rstrip() + "\n"


def _exit_codes() -> str:
    rows = [line.split(maxsplit=1) for line in EXIT_CODES.splitlines()[2:]]
    return "| exit code | |\n|---|---|\n" + "".join(f"| {code} | {text} |\n" for code, text in rows)


def _described(name: str) -> Iterator[str]:
    context = click.Context(cli, info_name="ropewalk")
    # `bench` hands everything on to a command of its own, which is only loaded when it is wanted.
    command = measure if name == "bench" else cli.get_command(context, name)
    assert command is not None, "every command of a section is there"
    yield from _command(command, click.Context(command, context, info_name=name))


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    if isinstance(command, click.Group):
        yield f"### {context.command_path}\n\n{_prose(command)}"
        for name, each in command.commands.items():
            yield from _command(each, click.Context(each, context, info_name=name))
        return
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"{'###' if context.parent and context.parent.parent is None else '####'} {context.command_path}\n"
    yield f"    {context.command_path} {usage}\n\n{_prose(command)}"
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    own = [each for each in options if not _is_shared(each)]
    if own:
        yield _table(own)
    if len(own) < len(options):
        shared = " ".join(f"`{each.opts[0]}`" for each in options if each not in own)
        yield f"{'Also' if own else 'Options:'} {shared}.\n"


@cache
def _shared() -> dict[str, click.Option]:
    """What nearly every command has, told once."""

    @click.command()
    @on_store_or_server
    def anything(project: Project) -> None:
        """Anything."""

    return {each.opts[0]: each for each in anything.params if isinstance(each, click.Option)}


def _is_shared(option: click.Option) -> bool:
    known = _shared().get(option.opts[0])
    return known is not None and known.help == option.help


def _table(options: Iterable[click.Option]) -> str:
    return "| option | |\n|---|---|\n" + "".join(map(_row, options))


def _prose(command: click.Command) -> str:
    return inspect.cleandoc(command.help or "") + "\n"


def _row(option: click.Option) -> str:
    kind = "" if option.is_flag else f" {option.make_metavar(click.Context(click.Command('')))}"
    text = (option.help or "") + _default(option)
    name = f"{', '.join(option.opts)}{kind}".replace("|", "\\|")
    return f"| `{name}` | {text.strip()} |\n"


def _default(option: click.Option) -> str:
    default: Any = option.default
    return f" (default {default})" if option.show_default and default not in (None, ()) else ""
