"""How a command executes, waits and serves: in its own process, or by processes that it starts."""
