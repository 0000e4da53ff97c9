"""A package that ends the process as soon as it is imported."""

raise SystemExit("goodbye")
