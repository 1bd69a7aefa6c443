"""Kafka's protocol for tests, in a process that can be killed: python -m tests.fakes.kafka_server PORT

librdkafka has a mock cluster inside. It listens where it likes, so PORT is handed through to it; from then on
clients use the address that it tells them, as they would with any Kafka.
"""

import asyncio
import sys

from confluent_kafka import Producer

START_WITHIN_S = 10
READ_BYTES = 65_536


async def main(port: int) -> None:
    cluster = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1})
    [broker] = cluster.list_topics(timeout=START_WITHIN_S).brokers.values()

    async def hand_through(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, on = await asyncio.open_connection(broker.host, broker.port)
        await asyncio.gather(pour(reader, on), pour(back, writer))

    server = await asyncio.start_server(hand_through, "127.0.0.1", port)
    await server.serve_forever()


async def pour(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(READ_BYTES):
            target.write(data)
            await target.drain()
    except ConnectionError:
        print("a client went away", file=sys.stderr)
    finally:
        target.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
