"""Try deploy/nginx.conf on this machine, without root, in a folder of its own.

    python -m tools.nginx --port 8080 --app 127.0.0.1:8000

The file is not changed: a copy of it gets other addresses, paths and limits. A line that should be replaced
but is missing is an error, so that file and copy cannot drift apart.
"""

import argparse
import getpass
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CONF = Path(__file__).parents[1] / "deploy" / "nginx.conf"
APP, NAME = "127.0.0.1:8000", "tickets.example"
LISTEN, LISTEN_DEFAULT = "listen 443 ssl http2;", "listen 443 ssl http2 default_server;"
CERTIFICATE = f"/etc/letsencrypt/live/{NAME}/fullchain.pem"
KEY = f"/etc/letsencrypt/live/{NAME}/privkey.pem"
TLS_BLOCK = re.compile(r"^ *#: with TLS\n.*?^ *#: end\n", re.MULTILINE | re.DOTALL)
TLS_LINES = re.compile(r"^ *(?:ssl_\w+ .*|add_header Strict-Transport-Security .*)\n", re.MULTILINE)
FOLDERS = ("/var/lib/nginx", "/var/log/nginx", "/run")


@dataclass(frozen=True, kw_only=True)
class NginxSetup:
    """nginx on one port of this machine."""

    folder: Path  # for its cache, its logs and its process id
    port: int
    apps: Sequence[str] = (APP,)
    names: Sequence[str] = ("127.0.0.1", "localhost")
    certificate: tuple[Path, Path] | None = None  # with its key; without: plain HTTP
    rates: dict[str, int] | None = None  # requests per second by zone, instead of those of the file
    per_address: int = 0  # connections and streams per client address; 0: as in the file
    workers: str = "auto"
    more: str = ""  # further locations

    @property
    def log(self) -> Path:
        """One line per request that nginx passed on to the application."""
        return self.folder / "holdfast.log"

    def render(self) -> str:
        text = CONF.read_text()
        text = replace_in(text, "user www-data;", f"user {getpass.getuser()};" if os.geteuid() == 0 else "")
        text = replace_in(text, "worker_processes auto;", f"worker_processes {self.workers};")
        for place in FOLDERS:
            text = replace_in(text, f"{place}/", f"{self.folder}/")
        text = re.sub(r"( *)server 127\.0\.0\.1:8000(.*)\n", self._servers, replace_in(text, APP, APP))
        text = replace_in(text, f"server_name {NAME};", f"server_name {' '.join(self.names)};")
        text = self._set_tls(text)
        for zone, rate in (self.rates or {}).items():
            text = replace_in(text, *_find_limit(text, zone, rate))
        if self.per_address:
            text = re.sub(r"limit_conn (address|streams) \d+;", rf"limit_conn \1 {self.per_address};", text)
        return replace_in(text, "#: more", self.more)

    def _servers(self, line: re.Match[str]) -> str:
        return "".join(f"{line[1]}server {app}{line[2]}\n" for app in self.apps)

    def _set_tls(self, text: str) -> str:
        """Listen on our port; use TLS only with a certificate."""
        text, count = TLS_BLOCK.subn("", text)
        if count != 1:
            raise LookupError("deploy/nginx.conf no longer has exactly one block '#: with TLS'")
        secure = " ssl http2" if self.certificate else ""
        text = replace_in(text, LISTEN_DEFAULT, f"listen 127.0.0.1:{self.port}{secure} default_server;")
        text = replace_in(text, LISTEN, f"listen 127.0.0.1:{self.port}{secure};")
        if self.certificate is None:
            return TLS_LINES.sub("", text)
        certificate, key = self.certificate
        return replace_in(replace_in(text, CERTIFICATE, str(certificate)), KEY, str(key))

    def write(self) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        target = self.folder / "nginx.conf"
        target.write_text(self.render())
        return target

    def command(self) -> tuple[str, ...]:
        """Runs nginx in the foreground with the file of `write`."""
        program = shutil.which("nginx") or "/usr/sbin/nginx"
        conf = str(self.folder / "nginx.conf")
        return (program, "-p", str(self.folder), "-c", conf, "-e", "error.log", "-g", "daemon off;")


def replace_in(text: str, old: str, new: str) -> str:
    if old not in text:
        raise LookupError(f"deploy/nginx.conf no longer has {old!r}")
    return text.replace(old, new)


def _find_limit(text: str, zone: str, rate: int) -> tuple[str, str]:
    found = re.search(rf"zone={zone}:\w+ rate=\d+r/s", text)
    if found is None:
        raise LookupError(f"deploy/nginx.conf no longer has the limit {zone!r}")
    return found[0], re.sub(r"rate=\d+", f"rate={rate}", found[0])


def main() -> None:
    parser = argparse.ArgumentParser("tools.nginx", description=__doc__)
    parser.add_argument("--port", type=int, default=8080, help="port on 127.0.0.1")
    parser.add_argument("--app", action="append", help=f"address of a web worker, repeatable (default {APP})")
    parser.add_argument("--folder", type=Path, default=Path(".holdfast/nginx"), help="for cache and logs")
    parser.add_argument("--print", action="store_true", help="only print the configuration")
    options = parser.parse_args()
    setup = NginxSetup(folder=options.folder.absolute(), port=options.port, apps=options.app or (APP,))
    if options.print:
        print(setup.render(), end="")
        return
    setup.write()
    print(f"http://127.0.0.1:{setup.port}, until you press Ctrl-C; logs are in {setup.folder}", flush=True)
    os.execv(setup.command()[0], setup.command())


if __name__ == "__main__":
    main()
