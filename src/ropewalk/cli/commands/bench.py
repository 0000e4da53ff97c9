"""`ropewalk bench`: everything after it is the benchmark's own."""

import click


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(arguments: tuple[str, ...]) -> int:
    """Measure this machine."""
    from ropewalk.bench import main

    return main(list(arguments))
