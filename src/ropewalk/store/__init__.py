"""The only room that speaks SQL: one text for every dialect, one module per noun.

Statements live in `queries/*.sql` and are called by name. The modules named after a noun are plain functions over a
`Reader` or a `Transaction`; `write` of a store takes whole batches of the rows listed in `rows.py`. What must be
true together is one transaction, opened by the caller.
"""

from ropewalk.core.errors import RopewalkError
from ropewalk.platforms import refusal

# Here, since every way to execute leads through the store, and its files are locked as Windows cannot.
if (_why := refusal()) is not None:
    raise RopewalkError(_why)
