"""What the events of every kind are built on."""

from msgspec import Struct


class Blob(Struct, frozen=True, gc=False):
    """A value too large for the log: kept by the blob store under its hash."""

    hash: str
    size: int


class EventBase(Struct, frozen=True, omit_defaults=True, rename="camel", tag_field="type", tag=True, gc=False):
    """A fact, written to the log under the name of its class; `at` is store time in µs."""

    at: int
