"""Every function there is, by name and in the order of the reference."""

from typing import Final

from ropewalk.core.expression.functions.chances import CHANCE
from ropewalk.core.expression.functions.dates import DATE
from ropewalk.core.expression.functions.encodings import ENCODING
from ropewalk.core.expression.functions.lists import LIST
from ropewalk.core.expression.functions.numbers import NUMBER
from ropewalk.core.expression.functions.objects import OBJECT
from ropewalk.core.expression.functions.regexes import REGEX
from ropewalk.core.expression.functions.table import Function, Topic
from ropewalk.core.expression.functions.texts import TEXT

TOPICS: Final[tuple[Topic, ...]] = (TEXT, NUMBER, LIST, OBJECT, DATE, CHANCE, ENCODING, REGEX)
FUNCTIONS: Final[dict[str, Function]] = {entry.name: entry for topic in TOPICS for entry in topic.functions}
