"""Whether the credentials of a store can be read with the secret key that is set here."""

from ropewalk.access.secret_key import fingerprints
from ropewalk.cli.backend.project import Project
from ropewalk.cli.commands.doctor.findings import Finding, Health
from ropewalk.core.errors import InvalidInput
from ropewalk.store import credentials
from ropewalk.store.access import Reader
from ropewalk.wiring import known_keys


async def master_key(project: Project, reader: Reader) -> list[Finding]:
    """One finding about the master key; none if the store has no credentials."""
    used = await credentials.masters(reader)
    if not used:
        return []
    try:
        known = await fingerprints(reader, known_keys(project.settings))
    except InvalidInput as error:
        return [Finding("credentials", Health.FAULT, str(error))]
    missing = [each for each in used if each not in known]
    if missing:
        value = f"encrypted under the master key {missing[0]}, and here is {' and '.join(known) or 'none'}"
        return [Finding("credentials", Health.FAULT, value, "set ROPEWALK_KEY, or bring back the file of the key")]
    if len(used) > 1:
        value, remedy = "encrypted under several master keys", f"`{project.hint('credentials', 'rotate')}`"
        return [Finding("credentials", Health.WARNING, value, remedy)]
    return [Finding("credentials", Health.OK, f"of {sum(used.values())} workspaces can be read")]
