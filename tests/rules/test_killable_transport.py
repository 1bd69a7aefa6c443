"""A server that dies between connect and request is one more broken connection for the clients of storms."""

import socket
import struct
import threading

import httpx2
import pytest

from tests.support.killable_transport import client_of_killed

RESET = struct.pack("ii", 1, 0)  # SO_LINGER of 0 seconds: close() sends a reset
TRIES = 300


def reset_all(server: socket.socket) -> None:
    for _ in range(TRIES):
        connection, _ = server.accept()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        connection.close()


async def test_a_reset_at_any_moment_is_a_transport_error() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=TRIES) as server:
        thread = threading.Thread(target=reset_all, args=(server,), daemon=True)
        thread.start()
        async with client_of_killed(f"http://127.0.0.1:{server.getsockname()[1]}") as client:
            for _ in range(TRIES):
                with pytest.raises(httpx2.TransportError):
                    await client.get("/")
        thread.join(5)
