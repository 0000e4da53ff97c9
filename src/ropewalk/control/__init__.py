"""The control socket: how other processes of the same user tell the owner of a store what to do.

A store never has a second writer. The process that owns it listens on a unix socket, named in the lock file, and
carries out the verbs of the service for other processes; it answers and refuses as the service itself does.
"""
