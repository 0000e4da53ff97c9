"""Where a process may listen: whether other machines can come in is said by a word of its own."""

import ipaddress
import socket

from ropewalk.core.errors import InvalidInput


def require_local(host: str) -> None:
    """Whether other machines can come in is not left to what a name happens to mean."""
    try:
        found = {str(each[4][0]) for each in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except OSError as error:
        raise InvalidInput(f"--host {host} is no address: {error.strerror}") from error
    if not all(ipaddress.ip_address(each.partition("%")[0]).is_loopback for each in found):
        raise InvalidInput(f"--host {host} can be reached from other machines: say --allow-remote if that is meant")
