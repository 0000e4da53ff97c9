"""Methods and functions of JavaScript and n8n that have an equal here: one line each.

`{0}` is what the method is called on, `{1}` … are its arguments. The kind of the result comes first.
"""

from typing import Final, NamedTuple


class Equal(NamedTuple):
    """What takes the place of a call; `note` says what is different, if anything is."""

    kind: str
    write: str
    note: str = ""


FIRST_ONLY: Final = "`replace` of a text replaces every match here, in JavaScript the first"
LENIENT: Final = "a text that is no number is an error here, NaN in JavaScript"

METHODS: Final[dict[tuple[str, int], Equal]] = {
    ("toUpperCase", 0): Equal("text", "upper({0})"),
    ("toLowerCase", 0): Equal("text", "lower({0})"),
    ("toTitleCase", 0): Equal("text", "capitalize({0})", "only the first letter becomes a capital"),
    ("trim", 0): Equal("text", "trim({0})"),
    ("toString", 0): Equal("text", "text({0})"),
    ("toFixed", 0): Equal("text", "fixed({0}, 0)"),
    ("toFixed", 1): Equal("text", "fixed({0}, {1})"),
    ("toNumber", 0): Equal("number", "number({0})"),
    ("toInt", 0): Equal("number", "floor(number({0}))", "numbers below zero are rounded down"),
    ("toFloat", 0): Equal("number", "number({0})"),
    ("toBoolean", 0): Equal("boolean", "boolean({0})"),
    ("round", 0): Equal("number", "round({0})"),
    ("round", 1): Equal("number", "round({0}, {1})"),
    ("floor", 0): Equal("number", "floor({0})"),
    ("ceil", 0): Equal("number", "ceil({0})"),
    ("abs", 0): Equal("number", "abs({0})"),
    ("includes", 1): Equal("boolean", "({1} in {0})"),
    ("contains", 1): Equal("boolean", "({1} in {0})"),
    ("startsWith", 1): Equal("boolean", "starts_with({0}, {1})"),
    ("endsWith", 1): Equal("boolean", "ends_with({0}, {1})"),
    ("indexOf", 1): Equal("number", "(index_of({0}, {1}) ?? -1)"),
    ("split", 1): Equal("list", "split({0}, {1})"),
    ("join", 0): Equal("text", 'join({0}, ",")'),
    ("join", 1): Equal("text", "join({0}, {1})"),
    ("slice", 1): Equal("any", "slice({0}, {1})"),
    ("slice", 2): Equal("any", "slice({0}, {1}, {2})"),
    ("substring", 1): Equal("text", "slice({0}, {1})"),
    ("substring", 2): Equal("text", "slice({0}, {1}, {2})"),
    ("replace", 2): Equal("text", "replace({0}, {1}, {2})", FIRST_ONLY),
    ("replaceAll", 2): Equal("text", "replace({0}, {1}, {2})"),
    ("repeat", 1): Equal("text", "repeat({0}, {1})"),
    ("padStart", 2): Equal("text", "pad_start({0}, {1}, {2})"),
    ("padEnd", 2): Equal("text", "pad_end({0}, {1}, {2})"),
    ("concat", 1): Equal("any", "({0} + {1})"),
    ("at", 1): Equal("any", "{0}[{1}]"),
    ("first", 0): Equal("any", "first({0})"),
    ("last", 0): Equal("any", "last({0})"),
    ("reverse", 0): Equal("list", "reverse({0})"),
    ("flat", 0): Equal("list", "flatten({0})"),
    ("unique", 0): Equal("list", "unique({0})"),
    ("removeDuplicates", 0): Equal("list", "unique({0})"),
    ("sum", 0): Equal("number", "sum({0})"),
    ("min", 0): Equal("number", "min({0})"),
    ("max", 0): Equal("number", "max({0})"),
    ("average", 0): Equal("number", "(sum({0}) / length({0}))"),
    ("chunk", 1): Equal("list", "chunk({0}, {1})"),
    ("map", 1): Equal("list", "map({0}, {1})"),
    ("filter", 1): Equal("list", "filter({0}, {1})"),
    ("find", 1): Equal("any", "find({0}, {1})"),
    ("some", 1): Equal("boolean", "any({0}, {1})"),
    ("every", 1): Equal("boolean", "all({0}, {1})"),
    ("reduce", 2): Equal("any", "reduce({0}, {1}, {2})"),
    ("keys", 0): Equal("list", "keys({0})"),
    ("values", 0): Equal("list", "values({0})"),
    ("merge", 1): Equal("any", "merge({0}, {1})"),
    ("isEmpty", 0): Equal("boolean", "(not {0})"),
    ("isNotEmpty", 0): Equal("boolean", "boolean({0})"),
    ("hasField", 1): Equal("boolean", "({1} in {0})"),
    ("toJsonString", 0): Equal("text", "json_encode({0})"),
    ("parseJson", 0): Equal("any", "json_decode({0})"),
    ("base64Encode", 0): Equal("text", "base64_encode({0})"),
    ("base64Decode", 0): Equal("text", "base64_decode({0})"),
    ("urlEncode", 0): Equal("text", "url_encode({0})"),
    ("urlDecode", 0): Equal("text", "url_decode({0})"),
    ("hash", 0): Equal("text", "md5({0})"),
    ("toISO", 0): Equal("text", "date({0})"),
    ("toISOString", 0): Equal("text", "date({0})"),
    ("toISODate", 0): Equal("text", 'date_format({0}, "%Y-%m-%d")'),
    ("toMillis", 0): Equal("number", "(epoch({0}) * 1000)"),
    ("getTime", 0): Equal("number", "(epoch({0}) * 1000)"),
    ("valueOf", 0): Equal("number", "(epoch({0}) * 1000)"),
    ("toSeconds", 0): Equal("number", "epoch({0})"),
    ("toUnixInteger", 0): Equal("number", "floor(epoch({0}))"),
    ("toDateTime", 0): Equal("text", "date({0})"),
    ("toUTC", 0): Equal("text", "date({0})"),
    ("startOf", 1): Equal("text", "date_start({0}, {1})"),
    ("setZone", 1): Equal("text", "date_in({0}, {1})"),
    ("getFullYear", 0): Equal("number", 'number(date_format({0}, "%Y"))', "the year in UTC"),
}

FUNCTIONS: Final[dict[tuple[str, int], Equal]] = {
    ("JSON.stringify", 1): Equal("text", "json_encode({0})"),
    ("JSON.parse", 1): Equal("any", "json_decode({0})"),
    ("Math.round", 1): Equal("number", "round({0})", "halves below zero are rounded away from zero"),
    ("Math.floor", 1): Equal("number", "floor({0})"),
    ("Math.ceil", 1): Equal("number", "ceil({0})"),
    ("Math.abs", 1): Equal("number", "abs({0})"),
    ("Math.sqrt", 1): Equal("number", "sqrt({0})"),
    ("Math.pow", 2): Equal("number", "pow({0}, {1})"),
    ("Math.max", 2): Equal("number", "max([{0}, {1}])"),
    ("Math.min", 2): Equal("number", "min([{0}, {1}])"),
    ("Math.random", 0): Equal("number", "random()"),
    ("parseInt", 1): Equal("number", "floor(number({0}))", LENIENT),
    ("parseInt", 2): Equal("number", "floor(number({0}))", LENIENT),
    ("parseFloat", 1): Equal("number", "number({0})", LENIENT),
    ("Number", 1): Equal("number", "number({0})", LENIENT),
    ("String", 1): Equal("text", "text({0})"),
    ("Boolean", 1): Equal("boolean", "boolean({0})"),
    ("Object.keys", 1): Equal("list", "keys({0})"),
    ("Object.values", 1): Equal("list", "values({0})"),
    ("Array.isArray", 1): Equal("boolean", '(type({0}) == "list")'),
    ("encodeURIComponent", 1): Equal("text", "url_encode({0})"),
    ("decodeURIComponent", 1): Equal("text", "url_decode({0})"),
    ("Date.now", 0): Equal("number", "(epoch(now) * 1000)"),
    ("DateTime.now", 0): Equal("text", "now"),
    ("DateTime.fromISO", 1): Equal("text", "date({0})"),
    ("crypto.randomUUID", 0): Equal("text", "uuid()"),
    ("$if", 3): Equal("any", "({0} ? {1} : {2})"),
    ("$ifEmpty", 2): Equal("any", "({0} ?: {1})"),
    ("$max", 2): Equal("number", "max([{0}, {1}])"),
    ("$min", 2): Equal("number", "min([{0}, {1}])"),
    ("$jmespath", 2): Equal("any", ""),
}

LUXON: Final = {
    "yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "MMMM": "%B", "MMM": "%b", "EEEE": "%A",
    "EEE": "%a", "ccc": "%a", "cccc": "%A", "ooo": "%j", "ZZZ": "%z",
}  # fmt: skip
"""Parts of the patterns of dates that have an equal."""

UNITS: Final = ("seconds", "minutes", "hours", "days", "weeks", "months", "years")
