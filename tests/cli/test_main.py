"""Names, help and exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from ropewalk.cli.main import SECTIONS, cli
from ropewalk.store.sqlite import SqliteStore
from tests.cli.conftest import NODES, Invoke, Start, code_of, told

COMMANDS = [name for section in SECTIONS.values() for name in section]


def test_help_tells_every_command_and_every_exit_code(invoke: Invoke):
    text = invoke("--help").output

    assert [name for name in COMMANDS if f"  {name} " not in text] == []
    assert [code for code in ("0 ", "1 ", "2 ", "3 ", "4 ", "130 ") if f" {code} " not in text] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_introduced_with_its_own_words(name: str):
    command = cli.get_command(click.Context(cli), name)
    introduced = next(section[name][1] for section in SECTIONS.values() if name in section)

    assert command is not None
    assert (command.help or "").startswith(introduced)


@pytest.mark.parametrize(
    ("arguments", "unneeded"),
    [
        (["--help"], ["pydantic", "aiohttp", "rich", "yaml", "msgspec"]),
        (["executions", "ls"], ["pydantic", "aiohttp", "asyncpg", "yaml", "ropewalk.engines.native.engine"]),
        (["executions", "ls", "--json"], ["pydantic", "asyncpg", "ropewalk.nodes.base"]),
        (["validate", "hello.yaml"], ["rich", "asyncpg", "aiosmtplib", "ropewalk.engines.native.engine"]),
        (["run", "hello.yaml"], ["fastapi", "aiohttp", "asyncpg", "aiosmtplib", "yarl"]),
    ],
)
def test_a_command_does_not_wait_for_what_it_does_not_need(invoke: Invoke, arguments: list[str], unneeded: list[str]):
    invoke("run", "hello.yaml")
    script = (
        "import sys; from ropewalk.cli.main import cli\n"
        f"try: cli.main({arguments!r})\n"
        f"except SystemExit as ended: print(ended.code, [name for name in {unneeded!r} if name in sys.modules])"
    )

    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert ended.stdout.splitlines()[-1] == "0 []"


def test_a_mistyped_command_is_guessed(invoke: Invoke):
    result = invoke("resum")

    assert result.exit_code == 2
    assert "did you mean 'resume'?" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("run", "hello.yaml"), 0, ""),
        (("run", "paid.yaml"), 1, "try again: ropewalk retry"),
        (("run", "undone.yaml"), 1, "what it did is undone; do it all again with: ropewalk replay"),
        (("run", "wrong.yaml"), 2, "wrong.yaml:5: nodes[1].id"),
        (("run", "missing.yaml"), 2, "there is no file missing.yaml"),
        (("run", "hello.yaml", "--input", "{"), 2, "--input is no JSON"),
        (("run", "hello.yaml", "--var", "other=1"), 2, "the workflow has no such variable"),
        (("run", "hello.yaml", "--var", "other"), 2, "write it as --var key=value"),
        (("run", "hello.yaml", "--nosuch"), 2, "No such option"),
        (("run", "late.yaml"), 3, "TIMEOUT; try again with"),
        (("run", "hello.yaml", "--db", "hello.yaml"), 4, "is not an SQLite database"),
        (("run", "hello.yaml", "--db", "nowhere/x.db"), 4, "its directory must exist"),
        (("executions", "show", "last"), 2, "there is no store at ropewalk.db"),
        (("executions", "ls"), 2, "makes one, --db names another\n"),
        (("executions", "ls", "--db", "hello.yaml"), 4, "choose another path"),
    ],
)
def test_every_end_has_its_exit_code_and_says_what_to_do(
    arguments: tuple[str, ...], code: int, words: str, invoke: Invoke
):
    result = invoke(*arguments)

    assert (result.exit_code, words in result.stderr) == (code, True), result.output


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("run", "paid.yaml"), "try again: ropewalk retry {} --db it.db --nodes {}"),
        (("explain", "last"), "go on with: ropewalk retry {} --db it.db --nodes {}"),
        (("cancel", "last"), "`ropewalk explain EXECUTION --db it.db --nodes {1}` says where it stands"),
        (("dlq", "show", "0000"), "`ropewalk executions ls --db it.db --nodes {1}`"),
        (("publish", "paid"), "1 waiting; go on with: ropewalk resume --db it.db --nodes {1}"),
    ],
    ids=str,
)
def test_a_command_that_is_printed_as_advice_carries_the_node_types(
    arguments: tuple[str, ...], advice: str, start: Start, invoke: Invoke, project: Path
):
    (project / "ropewalk.toml").write_text("", encoding="utf-8")
    document = "{ropewalk: 1, name: waits, nodes: [{id: a, type: wait, with: {event: paid}}]}"
    (project / "waits.yaml").write_text(document, encoding="utf-8")
    options = ("--db", "it.db", "--nodes", NODES)
    if arguments[0] == "publish":
        owner = start("run", "waits.yaml", *options)
        told(owner, "waits for")
        owner.kill()
        code_of(owner)
    else:
        invoke("run", "paid.yaml", *options)

    result = invoke(*arguments, *options)

    last = json.loads(invoke("executions", "ls", "--json", *options).stdout)[0]["id"]
    assert advice.format(last, NODES) in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ("executions", "ls"),
        ("executions", "ls", "--json"),
        ("executions", "events", "last"),
        ("workflows", "show", "hello"),
        ("approvals",),
        ("completion", "bash"),
        ("run", "hello.yaml"),
    ],
    ids=" ".join,
)
def test_an_answer_that_is_not_read_to_the_end_is_no_failure(arguments: tuple[str, ...], invoke: Invoke):
    invoke("run", "hello.yaml")
    reading, writing = os.pipe()
    os.close(reading)

    command = [sys.executable, "-m", "ropewalk", *arguments]
    ended = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)

    os.close(writing)
    assert (ended.returncode, "Traceback" in ended.stderr, "Exception" in ended.stderr) == (0, False, False)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_script_and_completes_commands_and_options(shell: str, invoke: Invoke):
    script = invoke("completion", shell)
    words = {"_ROPEWALK_COMPLETE": f"{shell}_complete", "COMP_WORDS": "ropewalk appr", "COMP_CWORD": "1"}
    words |= {"COMP_CWORD": "appr"} if shell == "fish" else {}
    command = [sys.executable, "-c", "from ropewalk.cli.main import main; main()"]
    completed = subprocess.run(command, env={**os.environ, **words}, capture_output=True, text=True, check=False)

    assert (script.exit_code, f"_ROPEWALK_COMPLETE={shell}_complete" in script.stdout) == (0, True)
    assert {"approvals", "approve"} <= {*completed.stdout.replace(",", "\n").split()}


def test_an_unknown_shell_is_refused_with_those_there_are(invoke: Invoke):
    result = invoke("completion", "tcsh")

    assert (result.exit_code, "'tcsh' is not one of 'bash', 'zsh', 'fish'" in result.stderr) == (2, True)


async def test_a_store_whose_owner_cannot_be_spoken_to_is_in_use(project: Path):
    store = await SqliteStore.open("ropewalk.db")
    command = [sys.executable, "-m", "ropewalk", "run", "hello.yaml"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        await store.close()

    assert ended.returncode == 4
    assert "in use by process" in ended.stderr


def test_a_refusal_is_a_json_document_where_json_was_asked_for(invoke: Invoke):
    result = invoke("run", "wrong.yaml", "--json")

    assert result.exit_code == 2
    assert result.stdout.startswith('{"error": {"type": "InvalidFile"')
    assert result.stdout.count("\n") == 1


def test_a_project_file_that_makes_no_sense_is_told_so(invoke: Invoke, project: Path):
    (project / "ropewalk.toml").write_text("nods = []", encoding="utf-8")

    result = invoke("run", "hello.yaml")

    assert result.exit_code == 2
    assert "ropewalk.toml cannot be used" in result.stderr


def test_what_follows_bench_is_the_benchmarks_own(invoke: Invoke):
    result = invoke("bench", "--help")

    assert (result.exit_code, "--store" in result.output) == (0, True)
