"""Renders `docs/credentials.md`: what credentials are, and the fields of every type, from the table of types."""

from collections.abc import Iterator
from typing import Final

from ropewalk.cli.views.node_types import field_in_words, kind_in_words
from ropewalk.nodes.credential_trials import TRIALS
from ropewalk.nodes.credential_types import TYPES, CredentialType

_INTRODUCTION: Final = """\
# Credentials

A credential is what a node logs in with: a password, a token, a key, and the names and addresses that belong to it. It
is a thing of the workspace. A workflow names it, and no expression can read it:

```yaml
nodes:
  - id: thank
    type: email.send
    credentials: shop-mail          # a name; a node that takes several names them by slot: { from: old, to: new }
    with: { to: "{{ input.email }}", subject: Thank you }
```

```
$ printf %s "$PASSWORD" | ropewalk credentials set shop-mail --type smtp \\
    --field host=mail.example.org --field username=shop --host mail.example.org
$ ropewalk credentials test shop-mail
$ ropewalk credentials show shop-mail      # without the secret, and with the workflows that use it
```

A secret is typed at a prompt or read from stdin; as an argument it would be seen by every user of the machine, and is
refused. `--values` reads all fields as one JSON object. `set` with a name that is there sets the given fields anew and
leaves the others; nodes get them from their next attempt on. The commands are in [cli.md](cli.md), the routes
(`/api/v1/credentials`) in [api.md](api.md), and both clients have the same methods ([client.md](client.md)). No route,
command or method gives a secret back.

In a function that is a node, the context gives the credential: `found = await context.credential()`, or
`context.credential("from", "postgres", "mysql")` for a slot and the types that fit; then `found.values["password"]`.
Every secret of it is masked in all that the run reports. An external runner gets no secret: it has its own.

## Who may use one

- Members of the workspace with the right `use-credentials` (editors and admins) use every credential in it. To keep,
  change, remove and share credentials needs the right to `administer`: a caller that may only use one could otherwise
  send it to a host of its own.
- `ropewalk credentials share NAME user:cem` lets a guest use one: a subject that is no member, and with whom workflows
  are shared one by one.
- It is checked when a workflow is saved (422 with the place) and when a node runs. An execution that is bounded by
  guests, since one saved its version or started it, uses what is shared with each of them ([security.md](security.md)).
- `hosts` binds a credential: it is sent to those hosts alone, `*.example.org` is all below. Without hosts it may be
  sent anywhere.

## Secrets that are kept elsewhere

A secret field may be a reference: `env:NAME` is a variable of the worker, `file:/path` the text of a file there. It is
read when a node asks, so that what a secret manager puts there anew is used at once. Only what the settings
`credentials.env` (names, `PAY_*` is all that begin so) and `credentials.files` (folders) name may be referred to:
members of a workspace would otherwise read the worker's environment.

## Tokens

The access token of an OAuth2 credential is kept encrypted beside it and shared by all workers. When it ends, or a
counterpart refuses it, one worker gets the next one while the others wait for it. A refresh token that the issuer
replaces is kept too.

## How they are encrypted

AES-256-GCM. Each workspace has a data key of its own, made at random; the master key wraps the data keys. The master
key is derived from the secret key of the store: the setting `key` (`ROPEWALK_KEY`), else what is in the file
`key_file`, else in `<database>.key` beside a file (0600, made when it is first needed), else in the user's
configuration. It is in no table and no backup of the database: keep a copy of it elsewhere. All servers and workers of
a database need the same.

Each secret is bound to its workspace, credential, revision and field, and to all that is stored in plain beside it. A
row that was swapped, cut short, taken from an earlier revision, or whose hosts or name were changed in the database
cannot be opened: the node fails for good and says to set the credential anew.

**Another master key**, without a pause:

1. Start every server and worker anew with the new key as `ROPEWALK_KEY` and the old one as `ROPEWALK_KEY_BEFORE`. (With
   a file: rename `<key_file>` to `<key_file>.before`; the next start makes a new one.) All of them read what either
   key wraps, and still wrap new data keys with the old one. A server with both takes cursors and lease tokens that
   were signed with either.
2. `ropewalk credentials rotate` wraps every data key with the new one. Broken off, it is called again.
3. Take `ROPEWALK_KEY_BEFORE` (or the file) away.

**A master key that is wrong or lost**: nodes that need a credential fail for good, and requests that write one are
refused (503). Both name the fingerprint of the key that is needed and of the one that is there. Nothing is stored.
With the right key everything is there again; dead letters can be requeued. If the key is lost for good, remove every
credential and set them anew: nothing else opens them.

## Types
"""


def render() -> str:
    """The whole page."""
    return "\n".join([_INTRODUCTION, *(line for each in TYPES.values() for line in _type(each))]).rstrip() + "\n"


def _type(kind: CredentialType) -> Iterator[str]:
    trial = "" if kind.name in TRIALS else " It cannot be tried."
    yield f"### `{kind.name}`\n"
    yield f"{kind.summary}{trial}\n"
    yield "| field | | what it is |"
    yield "|---|---|---|"
    schema = kind.schema()
    for name, field in schema["properties"].items():
        what = "secret" if field.get("writeOnly") else kind_in_words(field, schema)
        yield f"| `{name}` | {what} | {field_in_words(name, field, schema)} |"
    yield ""


if __name__ == "__main__":
    print(render(), end="")
