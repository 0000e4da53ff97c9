"""JSON as the events of YAML, so that one reader of documents serves both languages."""

import re
from collections.abc import Iterator

import msgspec
import yaml

_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]|[^\s,:{}\[\]"]+')


def is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False
    return True


def json_events(text: str) -> Iterator[yaml.Event]:
    """The events of a text that is JSON: taken for YAML, its tabs, long keys and pairs of surrogates would fail."""
    line = line_start = 0
    end = 0
    for token in _JSON_TOKEN.finditer(text):
        start = token.start()
        if breaks := text.count("\n", end, start):
            line += breaks
            line_start = text.rfind("\n", end, start) + 1
        end = token.end()
        yield _json_event(token[0], yaml.Mark("", start, line, start - line_start, None, 0))


def _json_event(token: str, mark: yaml.Mark) -> yaml.Event:
    match token[0]:
        case "{":
            return yaml.MappingStartEvent(None, None, True, mark, mark)
        case "[":
            return yaml.SequenceStartEvent(None, None, True, mark, mark)
        case "}":
            return yaml.MappingEndEvent(mark, mark)
        case "]":
            return yaml.SequenceEndEvent(mark, mark)
        case '"':
            return yaml.ScalarEvent(None, None, (False, True), msgspec.json.decode(token), mark, mark)
        case _:
            return yaml.ScalarEvent(None, None, (True, False), token, mark, mark)
