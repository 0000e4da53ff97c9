"""Where a command looks: the store or the server that its options name, and what it can read and ask there."""
