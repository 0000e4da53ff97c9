"""A deterministic world around the core: everything that happens in it follows from one integer.

`world.py` is the clock and the agenda; `store.py` keeps logs behind fences; `worker.py` owns executions, commits and
carries out commands; `faults.py` says what goes wrong; `outside.py` is what nodes do and what waits are answered with;
`people.py` asks for things; `quiet.py`, `laws.py` and `verdict.py` judge what came of it. `simulate(seed)` runs one
such world to its end; `bugs.py` has the mistakes it must not miss.
"""

from tests.simulator.simulation import Outcome, simulate

__all__ = ["Outcome", "simulate"]
