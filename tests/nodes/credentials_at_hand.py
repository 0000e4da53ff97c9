"""Credentials in memory, as the protocol of credentials says; those of a store have tests of their own."""

from ropewalk.nodes.base import NodeFailure
from ropewalk.nodes.credentials import Credential


class AtHand:
    """The credentials of every workspace, and the tokens that were asked for."""

    def __init__(self):
        self.kept = {}
        self.tokens = {}
        self.renewed = 0

    def add(self, called, kind, /, hosts=(), **values):
        self.kept[called] = Credential(called, kind, values, tuple(hosts))
        return called

    async def get(self, workspace, name):
        if name not in self.kept:
            raise NodeFailure.permanent(f"there is no credential {name!r}")
        return self.kept[name]

    async def require(self, workspace, name, actors):
        raise NodeFailure.permanent("may not be used")

    async def token(self, workspace, credential, renew, refused=""):
        token = self.tokens.get(credential.name)
        if token is None or token.value == refused:
            self.renewed += 1
            token = self.tokens[credential.name] = await renew()
        return token.value
