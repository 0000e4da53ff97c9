"""TLS to a database whose address was vetted: it connects to the address, and the certificate must be of the name."""

import ssl
from typing import Any

from ropewalk.nodes.failure import NodeFailure


class NamedContext(ssl.SSLContext):
    """Asks for a certificate of `name` in place of the address that the driver was given."""

    name: str

    def wrap_bio(self, incoming: Any, outgoing: Any, server_side: bool = False, server_hostname: Any = None,
                 session: Any = None) -> ssl.SSLObject:  # fmt: skip
        return super().wrap_bio(incoming, outgoing, server_side, self.name, session)


def context_for(name: str, mode: str, authority: str | None) -> ssl.SSLContext | None:
    """How to speak to the server of this name: `verify` (the default), `require` without proof of who it is, `none`."""
    if mode == "none":
        return None
    context = NamedContext(ssl.PROTOCOL_TLS_CLIENT)
    context.name = name
    if mode == "require":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    try:
        if authority:
            context.load_verify_locations(cadata=authority)
        else:
            context.load_default_certs()
    except ssl.SSLError as error:
        raise NodeFailure.permanent(f"the certificate authority of the credential cannot be read: {error}") from error
    return context
