"""Credentials, from the table of their types to what a node gets."""
