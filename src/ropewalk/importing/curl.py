"""A curl command → a node of the type `http.request`.

What looks like a secret (a login, a header or a parameter that carries a key) never gets into the node: it names a
credential instead, which is to be made, and the notes say of which type. Files are not read: a node is handed them.
"""

import json
import re
from typing import Any, Final
from urllib.parse import parse_qsl, quote_plus, urlsplit, urlunsplit

from msgspec import Struct

from ropewalk.importing.curl_command import Command, is_secret, read_command, shown
from ropewalk.importing.shell import words_of

PLACEHOLDER: Final = "CHANGE-ME"
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
LARGEST_INTEGER: Final = 2**53
# Headers that the request makes itself.
_OWN: Final = frozenset(
    {"connection", "content-length", "host", "te", "trailer", "transfer-encoding", "upgrade", "accept-encoding"}
)


class Imported(Struct):
    """The node, what has to be done before it works, and what is different from the command."""

    node: dict[str, Any]
    notes: list[str]


def node_of(command: str) -> Imported:
    """The node that does what the command does; ValueError if that cannot be."""
    words = words_of(command)
    if words and words[0].rsplit("/", 1)[-1].removesuffix(".exe") == "curl":
        words = words[1:]
    return _Node(read_command(words)).made()


class _Node:
    """The node in the making."""

    def __init__(self, command: Command) -> None:
        self._command = command
        self._notes = command.notes
        self._credential: str | None = None
        self._with: dict[str, Any] = {}
        self._headers: dict[str, str] = {}

    def made(self) -> Imported:
        command = self._command
        url = self._address(command.url or "")
        if command.user is not None:
            self._secret("http.digest" if "digest" in command.flags else command.way, "the login of -u")
        self._read_headers()
        is_query = "get" in command.flags
        body, query = ({}, self._as_query()) if is_query else (self._body(), [])
        self._with = {"method": self._method(bool(body)), "url": escaped(url)}
        self._add_query([*query, *self._pairs(command.queries)])
        if self._headers:
            self._with["headers"] = self._headers
        self._with |= body | self._rest()
        if self._with["method"] == "GET":
            del self._with["method"]
        node = {"id": "request", "type": "http.request", "with": self._with}
        if self._credential is not None:
            node["credentials"] = PLACEHOLDER
        return Imported(node, self._notes)

    def _secret(self, kind: str, what: str) -> None:
        """Notes that a credential takes the place of a secret; a node of this type has one."""
        if self._credential is None:
            self._credential = kind
            self._notes.append(
                f"{what} was left out: make a credential of the type {kind}, and name it in place of {PLACEHOLDER}"
            )
        else:
            self._notes.append(f"{what} was left out: a node has one credential, and this would be the second")

    def _address(self, url: str) -> str:
        """The address without a login, and without parameters that carry a key."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("the address must begin with http:// or https://")
        if "@" in parts.netloc:
            self._secret("http.basic", "the login in the address")
            parts = parts._replace(netloc=parts.netloc.rpartition("@")[2])
        kept = [pair for pair in parts.query.split("&") if not self._is_secret_pair(pair)]
        return urlunsplit(parts._replace(query="&".join(kept), fragment=""))

    def _is_secret_pair(self, pair: str) -> bool:
        name = pair.partition("=")[0]
        if not is_secret(name):
            return False
        self._secret("http.query", f"the parameter {name!r} of the address")
        return True

    def _read_headers(self) -> None:
        command = self._command
        given = list(command.headers)
        given += [f"User-Agent: {command.options['user-agent']}"] if "user-agent" in command.options else []
        given += [f"Referer: {command.options['referer']}"] if "referer" in command.options else []
        given += [f"Range: bytes={command.options['range']}"] if "range" in command.options else []
        given += [f"Cookie: {command.options['cookie']}"] if "cookie" in command.options else []
        for line in given:
            self._add_header(line)

    def _add_header(self, line: str) -> None:
        if line.startswith("@"):
            raise ValueError("-H @file cannot be had: another file is not read")
        name, colon, value = line.partition(":")
        name, value = name.strip(), value.strip()
        if not colon or not value:
            if not line.rstrip().endswith(";"):
                self._notes.append(f"the header {shown(name)} was left out: it has no value")
            return
        if name.lower() in _OWN:
            self._notes.append(f"the header {name} was left out: the request makes it itself")
        elif is_secret(name):
            self._secret(_kind_of(name, value), f"the header {name}")
        else:
            known = next((each for each in self._headers if each.lower() == name.lower()), None)
            self._headers[known or name] = f"{self._headers[known]}, {escaped(value)}" if known else escaped(value)

    def _content_type(self) -> str:
        found = next((value for name, value in self._headers.items() if name.lower() == "content-type"), "")
        return found.partition(";")[0].strip().lower()

    def _body(self) -> dict[str, Any]:
        if self._command.parts and self._command.data:
            raise ValueError("-d and -F cannot stand together")
        if "upload-file" in self._command.options:
            self._notes.append("the file of -T is not read: hand a file over as input.file")
            return {"file": "{{ input.file }}"}
        if self._command.parts:
            self._drop_content_type()
            return {"multipart": self._parts()}
        return self._data() if self._command.data else {}

    def _data(self) -> dict[str, Any]:
        data = self._command.data
        if any(name == "json" for name, _ in data):
            self._headers.setdefault("Accept", "application/json")
            return self._json("".join(value for _, value in data)) or {"text": escaped(_joined(data))}
        if len(data) == 1 and data[0][0] != "data-raw" and data[0][1].startswith("@"):
            self._notes.append("the file of -d @ is not read: hand a file over as input.file")
            return {"file": "{{ input.file }}"}
        text = _joined(data)
        if re.fullmatch(r"application/(?:[\w.+-]+\+)?json", self._content_type()):
            return self._json(text) or {"text": escaped(text)}
        if self._content_type() in ("", "application/x-www-form-urlencoded"):
            return self._form(text)
        return {"text": escaped(text)}

    def _json(self, text: str) -> dict[str, Any] | None:
        """The text as a JSON body, if no value of it would change."""
        try:
            value = json.loads(text, parse_constant=_refused)
        except (ValueError, RecursionError):
            return None
        if value is None or not _is_exact(value):
            return None
        if self._content_type() == "application/json":
            self._drop_content_type()
        return {"body": self._without_secrets(escaped(value))}

    def _form(self, text: str) -> dict[str, Any]:
        try:
            pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=True, max_num_fields=1_000)
        except ValueError:
            pairs = []
        if not pairs:
            self._headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
            return {"text": escaped(text)}
        self._drop_content_type()
        return {"form": self._without_secrets(escaped(_grouped(pairs)))}

    def _parts(self) -> dict[str, Any]:
        pairs: list[tuple[str, str]] = []
        for written, may_be_file in self._command.parts:
            name, _, value = written.partition("=")
            if may_be_file and value[:1] in ("@", "<"):
                self._notes.append(
                    f"the file of the part {name!r} is not read: hand a file over as input.{_word(name)}"
                )
                pairs.append((name, f"{{{{ input.{_word(name)} }}}}"))
            else:
                plain = value.partition(";type=")[0] if may_be_file else value
                pairs.append((name, str(escaped(plain))))
        made: dict[str, Any] = self._without_secrets(_grouped(pairs))
        return made

    def _without_secrets(self, value: Any) -> Any:
        """The value with a placeholder for what its fields call a secret."""
        if isinstance(value, list):
            return [self._without_secrets(each) for each in value]
        if not isinstance(value, dict):
            return value
        made = {}
        for name, inner in value.items():
            is_hidden = isinstance(inner, str | int) and not isinstance(inner, bool) and is_secret(name)
            if is_hidden and not (isinstance(inner, str) and inner.startswith("{{ input.")):
                self._notes.append(f"the value of the field {name!r} was left out: it looks like a secret")
                inner = PLACEHOLDER
            made[name] = self._without_secrets(inner)
        return made

    def _drop_content_type(self) -> None:
        self._headers = {name: value for name, value in self._headers.items() if name.lower() != "content-type"}

    def _as_query(self) -> list[tuple[str, str]]:
        return self._pairs(_joined(self._command.data).split("&") if self._command.data else [])

    def _pairs(self, written: list[str]) -> list[tuple[str, str]]:
        kept = [pair for pair in written if pair and not self._is_secret_pair(pair)]
        return parse_qsl("&".join(kept), keep_blank_values=True)

    def _add_query(self, pairs: list[tuple[str, str]]) -> None:
        if pairs:
            self._with["query"] = escaped(_grouped(pairs))

    def _method(self, has_body: bool) -> str:
        command = self._command
        guess = "POST" if has_body else "HEAD" if "head" in command.flags else "GET"
        method = command.method or ("PUT" if "upload-file" in command.options else guess)
        if method not in METHODS:
            raise ValueError(f"the method {method[:20]!r} cannot be had; there are {', '.join(METHODS)}")
        return method

    def _rest(self) -> dict[str, Any]:
        """Limits, and where the answer goes."""
        options, made = self._command.options, dict[str, Any]()
        if "max-time" in options:
            made["timeout"] = _number(options["max-time"], "--max-time")
        if "max-redirs" in options:
            made["maxRedirects"] = max(0, min(20, int(_number(options["max-redirs"], "--max-redirs"))))
        if "output" in options or "remote-name" in self._command.flags:
            made["responseType"] = "file"
        return made


def _kind_of(name: str, value: str) -> str:
    """The type of the credential that makes such a header."""
    if name.lower() != "authorization":
        return "http.header"
    scheme = value.split(maxsplit=1)[0].lower()
    return {"bearer": "http.bearer", "basic": "http.basic", "digest": "http.digest"}.get(scheme, "http.header")


def escaped(value: Any) -> Any:
    """The value such that no text of it is taken for an expression."""
    if isinstance(value, str):
        return value.replace("{{", '{{ "{{" }}')
    if isinstance(value, list):
        return [escaped(each) for each in value]
    if isinstance(value, dict):
        return {name: escaped(inner) for name, inner in value.items()}
    return value


def _joined(data: list[tuple[str, str]]) -> str:
    """The data as curl puts it together."""
    return "&".join(_encoded(value) if name == "data-urlencode" else value for name, value in data)


def _encoded(written: str) -> str:
    name, equals, value = written.partition("=")
    if not equals:
        return quote_plus(written)
    return f"{name}={quote_plus(value)}" if name else quote_plus(value)


def _grouped(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Pairs by name; of a name that comes again, the list of its values."""
    made: dict[str, Any] = {}
    for name, value in pairs:
        made.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in made.items()}


def _is_exact(value: Any) -> bool:
    """Whether no number of it is more than a document can hold."""
    if isinstance(value, list | dict):
        return all(_is_exact(each) for each in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, bool) or not isinstance(value, int) or abs(value) < LARGEST_INTEGER


def _refused(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _word(name: str) -> str:
    """The name of a part as the name of an input."""
    word = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_")
    return word if word[:1].isalpha() else f"file_{word}".rstrip("_")


def _number(written: str, option: str) -> float | int:
    try:
        number = float(written)
    except ValueError:
        raise ValueError(f"{option} needs a number") from None
    if not 0 <= number <= 3_600:
        raise ValueError(f"{option} must be from 0 to 3600")
    return int(number) if number == int(number) else number
