"""`ropewalk bench`: what durable execution costs here, beside the least Python that makes every node durable."""


def main(arguments: list[str]) -> int:
    """Measure what the arguments ask for and print it; the exit code."""
    # Here, since a measured process imports a module of this package and must hold nothing it does not need.
    from ropewalk.bench.command import run

    return run(arguments)
