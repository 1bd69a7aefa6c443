"""HTTP to servers that are killed: every connection that breaks is a TransportError.

anyio looks at the socket of a new connection. If the server resets it before the caller goes on, uvloop has
no socket for it any more, and what comes out is an AttributeError about None.
"""

import httpx2


class KillableTransport(httpx2.AsyncHTTPTransport):
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await super().handle_async_request(request)
        except AttributeError as error:
            if "getpeername" not in str(error):
                raise
            raise httpx2.ConnectError("reset as soon as it was connected", request=request) from error


def client_of_killed(url: str, timeout: float = 30) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=url, timeout=timeout, transport=KillableTransport())
