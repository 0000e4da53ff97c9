"""A workflow definition: the document of its author, and every rule it has to keep."""

from ropewalk.core.definition.document import Definition, parse_definition
from ropewalk.core.definition.node_type import NodeTypeInfo, NodeTypes
from ropewalk.core.definition.validation import DEFAULT_LIMITS, Limits

__all__ = ["DEFAULT_LIMITS", "Definition", "Limits", "NodeTypeInfo", "NodeTypes", "parse_definition"]
