"""The port that all web workers share: reserving it, and waiting until they serve."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.engines.errors import OperatorError

SERVES_WITHIN_S = 60.0


@contextmanager
def reserve_port(host: str, port: int) -> Iterator[int]:
    """Reserve the port, though only the workers listen on it."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            # Without SO_REUSEPORT, which would let two of our processes share it.
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
        yield int(reserved.getsockname()[1])


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
