"""Workflows to start for those who speak to another process."""

from typing import Any

ONE = {
    "ropewalk": 1,
    "name": "one",
    "vars": {"word": "Hello"},
    "nodes": [{"id": "a", "type": "set", "with": {"values": {"text": "{{ vars.word }} {{ input.name }}"}}}],
    "output": "{{ nodes.a.output.text }}",
}
ASKED = {
    "ropewalk": 1,
    "name": "asked",
    "nodes": [{"id": "ask", "type": "approval", "with": {"title": "Really?"}}],
    "output": "{{ nodes.ask.output.approved }}",
}
TOLD = {
    "ropewalk": 1,
    "name": "told",
    "nodes": [{"id": "word", "type": "wait", "with": {"signal": "word"}}],
    "output": "{{ nodes.word.output }}",
}
BROKEN = {"ropewalk": 1, "name": "broken", "nodes": [{"id": "stop", "type": "fail", "with": {"message": "no"}}]}


def chain(length: int) -> dict[str, Any]:
    """So many nodes, one after the other."""
    nodes = [{"id": f"n{index}", "type": "noop"} for index in range(length)]
    edges = [{"from": f"n{index}", "to": f"n{index + 1}"} for index in range(length - 1)]
    return {"ropewalk": 1, "name": "chain", "nodes": nodes, "edges": edges}
