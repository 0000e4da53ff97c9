"""The native engine: executions in memory, their logs in the store, one group commit for all of them."""
