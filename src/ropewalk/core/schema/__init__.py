"""JSON Schema, a total and bounded subset of 2020-12: for workflow inputs and node parameters."""

from ropewalk.core.schema.validator import Allowance, Certainty, check_schema, validate

__all__ = ["Allowance", "Certainty", "check_schema", "validate"]
