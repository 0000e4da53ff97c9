"""`ropewalk completion`: what makes a shell complete commands and options."""

from typing import Final

import click
from click.shell_completion import get_completion_class

from ropewalk.cli.exit_codes import Code

VARIABLE: Final = "_ROPEWALK_COMPLETE"
SHELLS: Final = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> int:
    """Print the script that completes commands in a shell.

    \b
    bash  ropewalk completion bash > ~/.local/share/bash-completion/completions/ropewalk
    zsh   ropewalk completion zsh > ~/.zfunc/_ropewalk    (with ~/.zfunc in fpath)
    fish  ropewalk completion fish > ~/.config/fish/completions/ropewalk.fish
    """
    from ropewalk.cli.main import cli  # here: that module loads this one

    kind = get_completion_class(shell)
    assert kind is not None, "click knows these shells"
    # Rendered as click does, but without its look for a bash on this machine: the script may be for another.
    made = kind(cli, {}, "ropewalk", VARIABLE)
    print(made.source_template % made.source_vars())
    return Code.OK
