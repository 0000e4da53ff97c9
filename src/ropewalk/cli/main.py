"""`ropewalk`: every command by name, how it ends, and what is said when it fails."""

import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

import click

from ropewalk.cli.streams import outlive_readers
from ropewalk.platforms import refusal

EXIT_CODES: Final = """\b
Exit codes:
    0  done; the execution ended SUCCESS; the worker has drained
    1  the execution FAILED; check or doctor found something wrong
    2  bad input: a file, an id, an option, or a request that comes too late
    3  the execution was CANCELLED or ended in TIMEOUT
    4  the store is unavailable or in use; the server cannot be reached
  130  interrupted: the execution is paused and can be resumed; the worker left at once"""

SECTIONS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "Serve": {
        "up": ("up:up", "Serve the API, and execute what is started."),
    },
    "Execute": {
        "run": ("run:run", "Execute a workflow, and show how it goes."),
        "resume": ("resume:resume", "Go on with what was paused, or what a crash left behind."),
        "worker": ("worker:worker", "Execute what others start, as one of a fleet on PostgreSQL."),
        "validate": ("validate:validate", "Say everything that is wrong with workflow files."),
        "init": ("init:init", "Make an example project."),
        "import": ("importing:import_", "Make workflows and nodes of what other programs wrote."),
        "login": ("login:login", "Remember a server and the token for it."),
    },
    "Look": {
        "executions": ("executions:executions", "List executions, show one, or read its events."),
        "files": ("files:files", "List the files of an execution, or save one."),
        "approvals": ("approvals:approvals", "List what waits for a person, and who may answer."),
        "workflows": ("workflows:workflows", "List workflows, show one, compare and publish versions."),
        "explain": ("explain:explain", "Say why an execution is not running, and what it waits for."),
        "nodes": ("nodes:nodes", "List the node types and what each is for, or show one."),
        "workers": ("workers:workers", "List the workers, and whether they are alive."),
        "triggers": ("triggers:triggers", "List what starts workflows, switch it, fire it, see what became of it."),
        "breakers": ("breakers:breakers", "List the health of what nodes call, or close a breaker by hand."),
        "dlq": ("dlq:dlq", "Look through the dead letters, and work them off."),
    },
    "Act": {
        "pause": ("verbs:pause", "Start nothing more; what runs finishes."),
        "cancel": ("verbs:cancel", "Stop an execution for good, or many."),
        "approve": ("verbs:approve", "Say yes to an approval that is waiting."),
        "reject": ("verbs:reject", "Say no to an approval that is waiting."),
        "signal": ("verbs:signal", "Tell an execution something it waits for."),
        "publish": ("publish:publish", "Publish an event to every execution that waits for it."),
        "retry": ("verbs:retry", "Try every failed node of an execution again, or of many."),
        "rerun": ("verbs:rerun", "Execute anew from one node on, keeping what came before."),
        "replay": ("verbs:replay", "Execute the same version with the same input once more."),
    },
    "Care": {
        "check": ("check:check", "Hold every execution of a store to the guarantees."),
        "sweep": ("sweep:sweep", "Remove what is old: executions, and what belongs to them."),
        "doctor": ("doctor:doctor", "Look at this machine and the store with a physician's eye."),
        "reset-clock": ("reset_clock:reset_clock", "Set the time of a file back to this machine's."),
        "credentials": ("credentials:credentials", "Keep, try, share and rotate credentials."),
        "keys": ("keys:keys", "List, make and revoke the API keys of a server."),
        "completion": ("completion:completion", "Print the script that completes commands in a shell."),
        "config": ("config:config", "Say what is set, and where each value came from."),
        "bench": ("bench:bench", "Measure this machine."),
    },
}
_COMMANDS: Final = {name: place for section in SECTIONS.values() for name, place in section.items()}


class Ropewalk(click.Group):
    """Loads a command when it is called, and turns errors into exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _, name = _COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(f"ropewalk.cli.commands.{module}"), name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(f"there is no command {args[0]!r}{_hint(args[0])}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, text) for name, (_, text) in commands.items()])

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, *_: Any, **extra: Any) -> NoReturn:
        """Carries the command out and leaves with its exit code."""
        arguments = list(sys.argv[1:] if args is None else args)
        sys.exit(self._outcome(arguments, prog_name or "ropewalk", extra))

    def _outcome(self, arguments: list[str], name: str, extra: dict[str, Any]) -> int:
        try:
            return int(super().main(arguments, name, **{**extra, "standalone_mode": False}) or 0)
        except click.ClickException as error:
            error.show()
            return 2
        except (click.Abort, KeyboardInterrupt):
            return 130
        except Exception as error:
            from ropewalk.cli.views.errors import is_told, report_error

            code = report_error(error, is_json="--json" in arguments)
            if code is None and not is_told(error):
                raise
            return 1 if code is None else code


def _hint(word: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(word, _COMMANDS, n=1)
    return f"; did you mean {close[0]!r}?" if close else "; see `ropewalk --help`"


@click.group(cls=Ropewalk, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ropewalk")
def cli() -> None:
    """A durable workflow engine: nodes run at least once, results are recorded once, stale writers are refused.

    Executions live in a file (--db, ROPEWALK_DB, or ropewalk.db here) or, for a fleet of workers, in a PostgreSQL
    database (--db postgresql://user@host/database), and survive any crash; or on a server that has one of these
    (--server URL, ROPEWALK_SERVER). EXECUTION may be the beginning or the end of an id, or `last`.
    """


def main() -> NoReturn:
    """The entry point."""
    outlive_readers()
    if (why := refusal()) is not None:
        click.echo(f"ropewalk: {why}", err=True)
        sys.exit(2)
    # Nearly all that a command makes is imported and stays: a collector that walks it again and again finds nothing.
    gc.set_threshold(50_000, 20, 50)
    cli.main()
