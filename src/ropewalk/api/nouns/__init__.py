"""One file per noun of the API: its routes and their handlers."""
