"""A real MariaDB server for the tests: a private one on loopback, which dies with the test process."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.certificates import write_certificate
from tests.postgres import _as_whom, _die_with_parent, _free_port

PROGRAM = "/usr/sbin/mariadbd"
SHARE = Path("/usr/share/mysql")
USER = "tester"
PASSWORD = "s3cret-of-mariadb"
_FIRST = f"""
create user '{USER}'@'127.0.0.1' identified by '{PASSWORD}';
grant all on *.* to '{USER}'@'127.0.0.1';
create database shop character set utf8mb4;
"""
_HASTE = (
    "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M",
    "--innodb-lock-wait-timeout=2",
)  # fmt: skip


class MariadbServer:
    """A server of our own on a free port, with a user and a database; in haste, so not durable."""

    def __init__(self) -> None:
        if not Path(PROGRAM).exists():
            raise RuntimeError("MariaDB is missing: run `make debian` as root, or install mariadb-server-core")
        self._folder = Path(tempfile.mkdtemp(prefix="ropewalk-maria-"))
        self.port = _free_port()
        if os.geteuid() == 0:
            shutil.chown(self._folder, "nobody")
        data = self._folder / "data"
        data.mkdir()
        if os.geteuid() == 0:
            shutil.chown(data, "nobody")
        common = [PROGRAM, "--no-defaults", f"--datadir={data}", *_HASTE]
        texts = (SHARE / f"{name}.sql" for name in ("mysql_system_tables", "mysql_system_tables_data"))
        tables = "".join(text.read_text() for text in texts)
        made = f"create database mysql;\nuse mysql;\n{tables}"
        first = self._folder / "first.sql"
        first.write_text(_FIRST)
        first.chmod(0o644)
        self.authority = write_certificate(self._folder, "db.test")
        for name in ("cert.pem", "key.pem"):
            shutil.chown(self._folder / name, "nobody") if os.geteuid() == 0 else None
            (self._folder / name).chmod(0o600)
        bootstrap = [*common, "--bootstrap", "--default-storage-engine=Aria"]
        subprocess.run(bootstrap, input=made.encode(), check=True, capture_output=True, **_as_whom())
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *common, f"--port={self.port}", "--bind-address=127.0.0.1", f"--init-file={first}",
                    f"--socket={data / 'socket'}", f"--pid-file={data / 'pid'}", "--skip-name-resolve",
                    f"--ssl-cert={self._folder / 'cert.pem'}", f"--ssl-key={self._folder / 'key.pem'}",
                ],
                stdout=log, stderr=log, preexec_fn=_die_with_parent, **_as_whom(),
            )  # fmt: skip
        self._wait()

    def _wait(self) -> None:
        for _ in range(600):
            if self._process.poll() is not None:
                raise RuntimeError((self._folder / "log").read_text())
            if b"ready for connections" in (self._folder / "log").read_bytes():
                return
            try:
                self._process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
        raise RuntimeError("the server did not come up in 30 s")

    @property
    def values(self) -> dict[str, object]:
        """The fields of a credential for it."""
        return {
            "host": "127.0.0.1", "port": self.port, "database": "shop", "username": USER, "password": PASSWORD,
            "tls": "none",
        }  # fmt: skip

    def remove(self) -> None:
        """Stops and leaves nothing behind."""
        self._process.terminate()
        self._process.wait(30)
        shutil.rmtree(self._folder, ignore_errors=True)
