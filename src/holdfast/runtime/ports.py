"""The port that all web workers share: reserving it, and waiting until they serve."""

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.engines.errors import OperatorError

SERVES_WITHIN_S = 60.0


@contextmanager
def reserve_port(host: str, port: int, run: Path) -> Iterator[int]:
    """Reserve the port, though only the workers listen on it.

    The kernel lets sockets with SO_REUSEPORT share a port. Two box offices must not, so a port in use is
    refused, except to a second command in the same data folder (`run` is its folder of what runs): the new
    release starts, and then the old one is stopped.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        if not port or not _is_served_from(run, port):
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
        reserved = socket.socket(family, kind, protocol)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind(address)
    except socket.gaierror as error:
        raise OperatorError(f"no such address: {host} ({error.strerror}); choose one with --host") from None
    except OSError as error:
        raise OperatorError(
            f"cannot listen on {host}:{port}: {error.strerror}; choose another port "
            "with --port, or --port 0 for a free one"
        ) from None
    with reserved:
        number = int(reserved.getsockname()[1])
        note = run / f"port-{number}-{os.getpid()}"
        note.touch()
        try:
            yield number
        finally:
            note.unlink(missing_ok=True)


def _is_served_from(run: Path, port: int) -> bool:
    """Whether a living command in this data folder has reserved the port."""
    return any(is_alive(int(note.name.rpartition("-")[2])) for note in run.glob(f"port-{port}-*"))


def is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except OSError:
        return False
    return True


async def wait_until_ready(host: str, port: int) -> None:
    """Wait until /readyz succeeds, so that the printed address works at once."""
    answer = b"nothing"
    try:
        async with asyncio.timeout(SERVES_WITHIN_S):
            while True:
                answer = await _first_line(host, port, "/readyz")
                if b" 200 " in answer:
                    return
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise OperatorError(
            f"it does not serve: /readyz returned {answer.decode(errors='replace').strip()}"
        ) from None


async def _first_line(host: str, port: int, path: str) -> bytes:
    try:
        reader, writer = await asyncio.open_connection(_reachable(host), port)
        try:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            return await reader.readline()
        finally:
            writer.close()
    except OSError as error:
        return str(error).encode()


def _reachable(host: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)


def url_for(host: str, port: int) -> str:
    host = _reachable(host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
