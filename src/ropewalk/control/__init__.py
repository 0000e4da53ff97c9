"""The control socket: how other processes of the same user tell the owner of a store what to do.

There is never a second writer on a store. The process that owns it listens on a unix socket, named in the lock file,
and carries out the verbs of the service for other processes; answers and refusals are what the service itself gives and
raises.
"""
