"""JSON Schema, a total and bounded subset of 2020-12: for workflow inputs and node parameters."""

from ropewalk.core.schema.validator import Certainty, check_schema, validate

__all__ = ["Certainty", "check_schema", "validate"]
