"""What a process that does nothing but execute sets for itself, once, before it opens its store."""

import gc
from typing import Final

# An execution is some hundred objects that live until it ends and hardly ever form a cycle. With Python's own
# thresholds the collector walks all of them again and again while they live: a fifth of the time of 1,000 at once.
# It begins when more is alive than 2,000 of them bring along; at a third of that it still took a tenth of the time.
_THRESHOLDS: Final = (150_000, 20, 50)


def spare_the_collector() -> None:
    """Let the collector look less often, and never again at what the imports have left behind.

    For the process of a worker, which is ours; a process that only uses the library keeps its own settings.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
