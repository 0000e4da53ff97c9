"""docs/configuration.md: the table of settings, as the code has it."""

from typing import Any

from ropewalk.settings import SETTINGS, Kind, Setting

HEAD = """# Configuration

A flag wins over the environment, that over the file, that over the default. `ropewalk config show` says each value and
where it came from; `--json` says it to programs. Unknown names in the file and values that make no sense are refused
with their place.

The file is `ropewalk.toml` in the current directory, or the one named by `--config` or `ROPEWALK_CONFIG` (TOML, or YAML
if its name ends in `.yaml`). `ropewalk.open` and `ropewalk.run` heed all of this too: what they are given
counts as a flag does, and `run` keeps nothing unless it is given a store. What is before the dot is a table:

```toml
db = "postgresql://ropewalk@db.internal/jobs"
nodes = ["nodes.py"]

[server]
port = 8470

[[access.issuers]]
issuer = "https://id.example.com"
audience = "ropewalk"
jwks_url = "https://id.example.com/.well-known/jwks.json"
```

In the environment, lists are words with commas or spaces between them, tables are JSON. Names may also be written as
workflow documents write them: `rateLimits` is `rate_limits`.

Breakers and rate limits may differ by what is called. A rule of a breaker says for which node type, for which hosts, or
both; the first that holds for a target counts, and what it does not say is as in `[breaker]`. A host is `shop.example`,
`shop.example:8080`, `*.shop.example` for every host below it, or `*`. A rate limit of the configuration is one for all
workspaces: every worker is to be told the same.

```toml
[breaker]
minimum_calls = 10
failure_rate = 50

[[breaker.rules]]
type = "http.request"
host = "*.flaky.example"
minimum_calls = 100
failure_rate = 80

[rate_limits.shop]
limit = 10
per = "1s"
hosts = ["api.shop.example"]
```

| setting | default | flag | environment | |
|---|---|---|---|---|
"""


def render() -> str:
    """The whole document."""
    return HEAD + "\n".join(map(_row, SETTINGS)) + "\n"


def _row(setting: Setting) -> str:
    flag = f"`{setting.flag}`" if setting.flag else ""
    about = f"{setting.about} {_kind(setting)}".strip()
    return f"| `{setting.name}` | {_shown(setting.default)} | {flag} | `{setting.variable}` | {about} |"


def _kind(setting: Setting) -> str:
    match setting.kind:
        case Kind.INTEGER | Kind.NUMBER:
            return f"({setting.span})"
        case Kind.TEXT | Kind.SWITCH:
            return ""
    return f"({setting.kind})"


def _shown(default: Any) -> str:
    if default is None or default in ((), {}):
        return ""
    return f"`{str(default).lower()}`" if isinstance(default, bool) else f"`{default}`"
