"""A deterministic simulator around the real engine: one integer decides everything that happens.

The engine, its service and the SQL are the real ones. Simulated is what they stand on: a loop whose clock jumps to the
next timer, a store that fails, loses answers, takes its time and dies with its process at any commit, nodes that do
whatever chance wants, and people who ask for whatever comes to their minds. When the faults stop, everything must come
to its end, nothing may be left in memory or in the inbox, and the judgement over the store must be clean.
"""

from tests.engines.simulation.simulation import Outcome, simulate

__all__ = ["Outcome", "simulate"]
