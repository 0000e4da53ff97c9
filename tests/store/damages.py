"""What may befall an execution in a store: a disk, a restored part of a backup, a person with a tool for SQL."""

from ropewalk.store.access import Store
from tests.store.samples import meddle

ENTRIES = {
    "bytes that are no text": b"\xff\xfe\x00",
    "half of an entry": b'{"v":2,"seq":2,"ev',
    "an event of an unknown type": b'{"v":2,"seq":2,"events":[{"type":"Nonsense","at":1}]}',
    "an entry of a newer Ropewalk": b'{"v":99,"seq":2,"events":[]}',
    "a node that the workflow has not": (
        b'{"v":2,"seq":2,"events":[{"type":"NodeSucceeded","at":1,"node":"nosuch","attempt":1}]}'
    ),
    "an entry without events": b'{"v":2,"seq":1,"events":[]}',
    "another beginning": b'{"v":2,"seq":1,"events":[{"type":"SlotTaken","at":1}]}',
}
"""What an entry of a log may have become."""
BEGINNINGS = ("an entry without events", "another beginning")
"""What only the first may."""

OF_LOGS = (*ENTRIES, "no log at all")
OF_VERSIONS = {
    "no version": "delete from workflow_version",
    "a version that is no document": "update workflow_version set document = 'nonsense'",
    "a version that is another document": "update workflow_version set document = '{\"nodes\":[{}]}'",
}
DAMAGES = (*OF_LOGS, *OF_VERSIONS)
A_FEW = (
    "half of an entry", "a node that the workflow has not", "another beginning", "no log at all", "no version",
    "a version that is another document",
)  # fmt: skip
"""One of each kind, as each makes its readers fail in another place."""


async def damage(store: Store, execution: str, how: str, *, is_first: bool = False) -> None:
    """This befalls the last (or first) entry of the execution's log, or the version of the workflow that it follows."""
    log = f"log where execution = '{execution}'"
    if how in OF_VERSIONS:
        await meddle(
            store, f"{OF_VERSIONS[how]} where workflow in (select workflow from execution where id = '{execution}')"
        )
    elif how in ENTRIES:
        which = "min" if is_first or how in BEGINNINGS else "max"
        entry = f"decode('{ENTRIES[how].hex()}', 'hex')" if store.is_shared else f"x'{ENTRIES[how].hex()}'"
        seq = f"select {which}(seq) from {log}"
        await meddle(store, f"update log set entry = {entry} where execution = '{execution}' and seq = ({seq})")
    else:
        await meddle(store, f"delete from {log}")
