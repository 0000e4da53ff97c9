"""Engines keep logs and deliver signals and commands durably; the rules are the core's."""
