"""How people say which store they mean."""

from ropewalk.core.errors import InvalidInput


def is_shared(db: str) -> bool:
    """Whether this names a store that several workers may have."""
    return db.startswith(("postgres://", "postgresql://"))


def path_of(url: str) -> str:
    """The file of `sqlite:///file.db`, or of a plain path; the address of anything else but a server is refused."""
    if "://" in url.removeprefix("sqlite:///") and not is_shared(url):
        raise InvalidInput("a store is a file, like sqlite:///jobs.db, or a server, like postgresql://host/jobs")
    return url.removeprefix("sqlite:///")
