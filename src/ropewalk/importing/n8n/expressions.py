"""Expressions of n8n, written in our language where that says the same."""

from typing import Any, Final

from ropewalk.core.expression import ExpressionError, compile_expression
from ropewalk.importing.n8n.flows import Flow, Scope, braces, escaped, literal, lookup, quoted
from ropewalk.importing.n8n.javascript import (
    Arrow,
    Binary,
    Call,
    Choice,
    Entries,
    Items,
    Literal,
    Member,
    Name,
    New,
    Regex,
    Text,
    Tree,
    Unary,
    Untranslatable,
    parse,
)
from ropewalk.importing.n8n.methods import FIRST_ONLY, FUNCTIONS, METHODS, UNITS, Equal
from ropewalk.importing.n8n.pieces import Piece, dotted, joined, kind_of, parts_of, pattern_of, steps_of

LOOSE: Final = "`==` converts its two sides in JavaScript, and here it does not"
UNKNOWN_SUM: Final = "`+` of values whose kinds are not known: both must be numbers, texts or lists here"
RE2: Final = "regular expressions are those of RE2 here"
NOT_PAIRED: Final = "the item of another list is taken to be its first"
_SAME: Final = {"===": "==", "!==": "!=", "==": "==", "!=": "!=", "??": "??"}


class Translator:
    """Translates the expressions of one node, and remembers what is different."""

    def __init__(self, scope: Scope, *, is_rule: bool = False) -> None:
        self.scope = scope
        self._is_rule = is_rule
        self.notes: dict[str, None] = {}
        self._own: list[str] = []

    # Parameters of n8n → values and expressions of a document

    def value(self, given: Any) -> Any:
        """A parameter as a value of a document: texts that are expressions become ours."""
        match given:
            case str():
                return self._text(given)
            case dict():
                return {str(key): self.value(each) for key, each in given.items()}
            case list():
                return [self.value(each) for each in given]
            case _:
                return given

    def expression(self, given: Any) -> str:
        """A parameter as one expression."""
        if not isinstance(given, str) or not given.startswith("="):
            return literal(given)
        parts = parts_of(given[1:])
        if len(parts) == 1 and not isinstance(parts[0], str):
            return self.checked(self.piece(parse(parts[0].source)).inside)
        pieces = [quoted(each) if isinstance(each, str) else self._as_text(each.source) for each in parts]
        return self.checked(f"({' + '.join(pieces)})" if pieces else '""')

    def _text(self, given: str) -> str:
        if not given.startswith("="):
            return escaped(given)
        return "".join(
            escaped(each) if isinstance(each, str) else braces(self.checked(self.piece(parse(each.source)).text))
            for each in parts_of(given[1:])
        )

    def _as_text(self, source: str) -> str:
        piece = self.piece(parse(source))
        return piece.inside if piece.kind == "text" else f"text({piece.text})"

    def checked(self, written: str) -> str:
        """The expression, if it is one."""
        try:
            compile_expression(f"map([], x => {written})" if self._is_rule else written)
        except ExpressionError as error:
            raise Untranslatable(f"an expression cannot be said here: {error}") from None
        return written

    # Trees

    def piece(self, tree: Tree) -> Piece:
        """A tree in our language."""
        match tree:
            case Literal():
                return Piece(literal(tree.value), kind_of(tree.value))
            case Name():
                return self._name(tree.name)
            case Member():
                return self._member(tree)
            case Call():
                return self._call(tree)
            case New():
                return self._new(tree)
            case Unary():
                return self._unary(tree)
            case Binary():
                return self._binary(tree)
            case Choice():
                parts = [self.piece(each).inside for each in (tree.condition, tree.then, tree.other)]
                return Piece(f"{parts[0]} ? {parts[1]} : {parts[2]}", is_atom=False)
            case Arrow():
                return self._arrow(tree)
            case Items():
                return Piece(f"[{', '.join(self.piece(each).text for each in tree.items)}]", "list")
            case Entries():
                entries = (f"{quoted(key)}: {self.piece(each).text}" for key, each in tree.entries)
                return Piece("{" + ", ".join(entries) + "}", "object")
            case Regex():
                raise Untranslatable("a regular expression stands by itself")
            case Text():
                return self._template(tree)

    def _name(self, name: str) -> Piece:
        if name in self._own:
            return Piece(name)
        found = {
            "$json": self.scope.json, "$now": "now", "$today": 'date_start(now, "days")', "$vars": "vars",
            "$env": "env", "$itemIndex": self.scope.index, "$runIndex": "0", "$position": self.scope.index,
        }.get(name)  # fmt: skip
        if found is None:
            raise Untranslatable(f"{name} has no equal here")
        return Piece(found, "text" if name in ("$now", "$today") else "any")

    def _member(self, tree: Member) -> Piece:
        if (known := self._of_n8n(tree)) is not None:
            return Piece(known)
        of, key = self.piece(tree.of), tree.key
        if isinstance(key, Literal) and isinstance(key.value, str):
            if key.value == "length":
                return Piece(f"length({of.text})", "number")
            return Piece(lookup(of.inside, key.value))
        return Piece(f"{of.inside}[{self.piece(key).text}]")

    def _of_n8n(self, tree: Tree) -> str | None:
        """Items of nodes, and what n8n tells of a workflow."""
        steps = steps_of(tree)
        match steps:
            case [("$input" | "item" | "$items"), *_] if "item" not in self._own:
                return self._own_input(steps)
            case ["$node", name, "json"] if isinstance(name, str):
                return self._item_of(name, "item")
            case [("$()" | "$items()"), name, *how] if isinstance(name, str):
                return self._reference(name, how)
            case ["$workflow", "name"]:
                return "execution.workflow"
            case ["$workflow", "id"]:
                self.note("the id of the workflow is its name here")
                return "execution.workflow"
            case ["$execution", "id"]:
                return "execution.id"
            case ["$prevNode", "name"]:
                return quoted(self.scope.before)
            case _:
                return None

    def _own_input(self, steps: list[Any]) -> str | None:
        match steps[1:]:
            case ["json"] | ["item", "json"] | ["first()", "json"] | ["last()", "json"]:
                return self.scope.json
            case _:
                return None

    def _reference(self, name: str, how: list[Any]) -> str | None:
        match how:
            case [("item" | "first()" | "last()") as which, "json"]:
                return self._item_of(name, which)
            case ["all()"]:
                return f"map({self._flow(name).items()}, x => {{json: x}})"
            case [("all()" | int()), *rest] if rest[-1:] == ["json"]:
                place = next((each for each in (how[0], *rest) if isinstance(each, int)), None)
                return None if place is None else self._flow(name).at(str(place))
            case _:
                return None

    def _item_of(self, name: str, which: str) -> str:
        flow, scope = self._flow(name), self.scope
        if not flow.is_many or which != "item":
            return flow.at("-1" if which == "last()" else "0")
        if flow.lineage == scope.lineage and scope.index not in (None, "0"):
            return flow.at(str(scope.index))
        self.note(NOT_PAIRED)
        return flow.at("0")

    def _flow(self, name: str) -> Flow:
        if name not in self.scope.nodes:
            raise Untranslatable(f"{name!r} does not come before this node")
        return self.scope.nodes[name]

    def note(self, text: str) -> None:
        """Remembers what is different."""
        self.notes[text] = None

    def _call(self, tree: Call) -> Piece:
        if (name := dotted(tree.function)) and (equal := FUNCTIONS.get((name, len(tree.arguments)))):
            return self._equal(equal, [self.piece(each) for each in tree.arguments])
        if not isinstance(tree.function, Member) or not isinstance(tree.function.key, Literal):
            raise Untranslatable(f"the function {dotted(tree.function) or 'that is called'} has no equal here")
        method = str(tree.function.key.value)
        if method in ("plus", "minus", "toFormat", "format"):
            return self._of_dates(method, self.piece(tree.function.of), tree.arguments)
        if any(isinstance(each, Regex) for each in (tree.function.of, *tree.arguments)):
            return self._of_regexes(method, tree.function.of, tree.arguments)
        equal = METHODS.get((method, len(tree.arguments)))
        if equal is None:
            raise Untranslatable(f"the method {method} has no equal here")
        return self._equal(equal, [self.piece(each) for each in (tree.function.of, *tree.arguments)])

    def _equal(self, equal: Equal, given: list[Piece]) -> Piece:
        if not equal.write:
            raise Untranslatable("JMESPath has no equal here")
        if equal.note:
            self.note(equal.note)
        return Piece(equal.write.format(*(each.inside for each in given)), equal.kind)

    def _of_regexes(self, method: str, of: Tree, arguments: tuple[Tree, ...]) -> Piece:
        self.note(RE2)
        match method, of, arguments:
            case "test", Regex(), (text,):
                return Piece(f"matches({self.piece(text).text}, {self._regex(of)})", "boolean")
            case "match", _, (Regex() as regex,):
                function = "find_all" if "g" in regex.flags else "match"
                return Piece(f"{function}({self.piece(of).text}, {self._regex(regex)})")
            case (("replace" | "replaceAll"), _, (Regex() as regex, new)):
                if "g" not in regex.flags:
                    self.note(FIRST_ONLY)
                given = (self.piece(of).text, self._regex(regex), self.piece(new).text)
                return Piece(f"regex_replace({', '.join(given)})", "text")
            case _:
                raise Untranslatable(f"the method {method} with a regular expression has no equal here")

    def _regex(self, regex: Regex) -> str:
        if set(regex.flags) - set("gimsu"):
            raise Untranslatable(f"the flags {regex.flags} of a regular expression have no equal here")
        flags = "".join(each for each in "ims" if each in regex.flags)
        return quoted(f"(?{flags}){regex.pattern}" if flags else regex.pattern)

    def _of_dates(self, method: str, of: Piece, arguments: tuple[Tree, ...]) -> Piece:
        match method, arguments:
            case (("toFormat" | "format"), (Literal(value=str() as pattern),)):
                return Piece(f"date_format({of.text}, {quoted(pattern_of(pattern))})", "text")
            case (("plus" | "minus"), (Entries(entries=[(unit, amount)]),)):
                return self._moved(of, method, amount, unit)
            case (("plus" | "minus"), (amount, Literal(value=str() as unit))):
                return self._moved(of, method, amount, unit)
            case _:
                raise Untranslatable(f"the method {method} with these arguments has no equal here")

    def _moved(self, of: Piece, method: str, amount: Tree, unit: str) -> Piece:
        unit = unit if unit.endswith("s") else f"{unit}s"
        if unit not in UNITS:
            raise Untranslatable(f"a time is moved by {unit}")
        sign = "-" if method == "minus" else ""
        return Piece(f'date_add({of.text}, {sign}{self.piece(amount).inside}, "{unit}")', "text")

    def _new(self, tree: New) -> Piece:
        if tree.name != "Date" or len(tree.arguments) > 1:
            raise Untranslatable(f"new {tree.name} has no equal here")
        return self.piece(tree.arguments[0]) if tree.arguments else Piece("now", "text")

    def _unary(self, tree: Unary) -> Piece:
        operand = self.piece(tree.operand)
        if tree.operator == "!":
            return Piece(f"not {operand.inside}", "boolean", is_atom=False)
        if tree.operator == "+":
            return Piece(f"number({operand.text})", "number")
        return Piece(f"-{operand.inside}", "number", is_atom=False)

    def _binary(self, tree: Binary) -> Piece:
        left, right = self.piece(tree.left), self.piece(tree.right)
        sign = tree.operator
        if sign == "+":
            return self._sum(left, right)
        if sign in ("&&", "||"):
            return joined(sign, left, right)
        if sign in ("==", "!=") and "null" not in (left.text, right.text):
            self.note(LOOSE)
        kind = "number" if sign in "-*/%" else "any" if sign == "??" else "boolean"
        return Piece(f"{left.inside} {_SAME.get(sign, sign)} {right.inside}", kind, is_atom=False)

    def _sum(self, left: Piece, right: Piece) -> Piece:
        if "text" in (left.kind, right.kind):
            both = (each.inside if each.kind == "text" else f"text({each.text})" for each in (left, right))
            return Piece(" + ".join(both), "text", is_atom=False)
        if (left.kind, right.kind) != ("number", "number"):
            self.note(UNKNOWN_SUM)
        kind = "number" if "number" in (left.kind, right.kind) else "any"
        return Piece(f"{left.inside} + {right.inside}", kind, is_atom=False)

    def _arrow(self, tree: Arrow) -> Piece:
        self._own += tree.names
        body = self.piece(tree.body)
        del self._own[len(self._own) - len(tree.names) :]
        names = tree.names[0] if len(tree.names) == 1 else f"({', '.join(tree.names)})"
        # As it is: an argument that is a rule stands in no parentheses.
        return Piece(f"{names} => {body.inside}")

    def _template(self, tree: Text) -> Piece:
        parts = [each for each in tree.parts if each != ""]
        written = [quoted(each) if isinstance(each, str) else f"text({self.piece(each).text})" for each in parts]
        return Piece(" + ".join(written) or '""', "text", is_atom=len(written) < 2)
