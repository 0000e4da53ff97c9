"""Node types: what a node can do, and what it is given to do it with."""
