"""A deterministic simulator around the real engine: one integer decides everything that happens.

The engine, its service and the SQL are the real ones. Simulated is what they stand on: a loop whose clock jumps to the
next timer, a store that fails, loses answers, takes its time and dies with its process at any commit, nodes that do
whatever chance wants, and people who ask for whatever comes to their minds. When the faults stop, everything must come
to its end, nothing may be left in memory or in the inbox, and the judgement over the store must be clean.

A fleet is the same with several workers on a shared store: they are stopped past their leases, lose sight of the store,
take over from each other and carry out each other's runs, and a watch over the store judges every commit.
"""

from tests.engines.simulation.simulation import Outcome, simulate

__all__ = ["Outcome", "simulate"]
