"""Redis over TLS: one server, and every node of a cluster. Its certificate must be trusted."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.engines.errors import EngineDown, OperatorError
from holdfast.engines.open_redis import open_redis
from holdfast.engines.startup_checks import holds_facts
from tests.support.certificates import tls_front, vouched_certificate
from tests.support.redis_servers import CLUSTER_SETTINGS, Server, make_server, running
from tests.support.wait import until


@dataclass(frozen=True)
class Node:
    """The only node of a cluster; `port` speaks TLS."""

    server: Server
    port: int
    certificate: Path


@pytest.fixture(scope="module")
async def node(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Node]:
    folder, servers = tmp_path_factory.mktemp("redis"), list[Server]()
    certificate = vouched_certificate(folder)
    async with tls_front(certificate, lambda: servers[0].port) as port:
        # A cluster names its nodes to clients: by the port that speaks TLS.
        own = make_server(folder, "node", **CLUSTER_SETTINGS, **{"cluster-announce-port": str(port)})
        servers.append(own)
        async with running(own):
            await own.call("CLUSTER", "ADDSLOTSRANGE", 0, 16_383)
            await until(lambda: is_ready(own))
            yield Node(own, port, certificate.file)


async def is_ready(server: Server) -> bool:
    return (await server.fields("CLUSTER", "INFO"))["cluster_state"] == "ok"


@pytest.mark.parametrize("scheme", ["rediss", "rediss+cluster"])
async def test_a_certificate_of_the_given_authority_is_accepted_and_no_other(node: Node, scheme: str) -> None:
    address = f"{scheme}://127.0.0.1:{node.port}"
    trusting = open_redis(f"{address}?ssl_ca_certs={node.certificate}", links_max=1, timeout_s=5)
    wary = open_redis(address, links_max=1, timeout_s=5)
    try:
        assert await trusting.call("SET", "key", "value")
        assert await trusting.call("GET", "key") == b"value"
        with pytest.raises(EngineDown):
            await wary.call("GET", "key")
        with pytest.raises(OperatorError, match="certificate"):
            await holds_facts(address)
    finally:
        await trusting.close()
        await wary.close()
