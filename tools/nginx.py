"""Try deploy/nginx.conf on this machine, without root, in a folder of its own.

    python -m tools.nginx --port 8080 --app 127.0.0.1:8000

The file stays as it is; a copy of it gets other addresses, paths and limits. What cannot be found in it is an
error, so that the two do not drift apart.
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
WITH_TLS = re.compile(r"^ *#: with TLS\n.*?^ *#: end\n", re.MULTILINE | re.DOTALL)
OF_TLS = re.compile(r"^ *(?:ssl_\w+ .*|add_header Strict-Transport-Security .*)\n", re.MULTILINE)
FOLDERS = ("/var/cache/nginx", "/var/log/nginx", "/run")


@dataclass(frozen=True, kw_only=True)
class Front:
    """A front on one port of this machine."""

    folder: Path  # for its cache, its logs and its process id
    port: int
    apps: Sequence[str] = (APP,)
    names: Sequence[str] = ("127.0.0.1", "localhost")
    certificate: tuple[Path, Path] | None = None  # with its key; without: plain HTTP
    rates: dict[str, int] | None = None  # requests a second by zone, instead of those of the file
    per_address: int = 0  # connections and streams of one address; 0: as in the file
    workers: str = "auto"
    more: str = ""  # further locations

    @property
    def log(self) -> Path:
        """What reached the box office, a line each."""
        return self.folder / "holdfast.log"

    def text(self) -> str:
        text = CONF.read_text()
        text = replaced(text, "user www-data;", f"user {getpass.getuser()};" if os.geteuid() == 0 else "")
        text = replaced(text, "worker_processes auto;", f"worker_processes {self.workers};")
        for place in FOLDERS:
            text = replaced(text, f"{place}/", f"{self.folder}/")
        text = re.sub(r"( *)server 127\.0\.0\.1:8000(.*)\n", self._servers, replaced(text, APP, APP))
        text = replaced(text, f"server_name {NAME};", f"server_name {' '.join(self.names)};")
        text = self._secured(text)
        for zone, rate in (self.rates or {}).items():
            text = replaced(text, *_limits(text, zone, rate))
        if self.per_address:
            text = re.sub(r"limit_conn (address|streams) \d+;", rf"limit_conn \1 {self.per_address};", text)
        return replaced(text, "#: more", self.more)

    def _servers(self, line: re.Match[str]) -> str:
        return "".join(f"{line[1]}server {app}{line[2]}\n" for app in self.apps)

    def _secured(self, text: str) -> str:
        """On our port; without a certificate, without TLS."""
        text, count = WITH_TLS.subn("", text)
        if count != 1:
            raise LookupError("deploy/nginx.conf has no part for the ports of the web any more")
        secure = " ssl http2" if self.certificate else ""
        text = replaced(text, LISTEN_DEFAULT, f"listen 127.0.0.1:{self.port}{secure} default_server;")
        text = replaced(text, LISTEN, f"listen 127.0.0.1:{self.port}{secure};")
        if self.certificate is None:
            return OF_TLS.sub("", text)
        certificate, key = self.certificate
        return replaced(replaced(text, CERTIFICATE, str(certificate)), KEY, str(key))

    def write(self) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        target = self.folder / "nginx.conf"
        target.write_text(self.text())
        return target

    def command(self) -> tuple[str, ...]:
        """nginx in the foreground, on what `write` has written."""
        program = shutil.which("nginx") or "/usr/sbin/nginx"
        conf = str(self.folder / "nginx.conf")
        return (program, "-p", str(self.folder), "-c", conf, "-e", "error.log", "-g", "daemon off;")


def replaced(text: str, old: str, new: str) -> str:
    if old not in text:
        raise LookupError(f"deploy/nginx.conf has no {old!r} any more")
    return text.replace(old, new)


def _limits(text: str, zone: str, rate: int) -> tuple[str, str]:
    found = re.search(rf"zone={zone}:\w+ rate=\d+r/s", text)
    if found is None:
        raise LookupError(f"deploy/nginx.conf has no limit {zone!r} any more")
    return found[0], re.sub(r"rate=\d+", f"rate={rate}", found[0])


def main() -> None:
    parser = argparse.ArgumentParser("tools.nginx", description=__doc__)
    parser.add_argument("--port", type=int, default=8080, help="where it listens, on 127.0.0.1")
    parser.add_argument("--app", action="append", help=f"a box office behind it; {APP} if none is named")
    parser.add_argument("--folder", type=Path, default=Path(".holdfast/nginx"), help="for cache and logs")
    parser.add_argument("--print", action="store_true", help="only say what the configuration would be")
    asked = parser.parse_args()
    front = Front(folder=asked.folder.absolute(), port=asked.port, apps=asked.app or (APP,))
    if asked.print:
        print(front.text(), end="")
        return
    front.write()
    print(f"http://127.0.0.1:{front.port}, until you press Ctrl-C; logs are in {front.folder}", flush=True)
    os.execv(front.command()[0], front.command())


if __name__ == "__main__":
    main()
