"""Kafka's protocol on several brokers, for tests: python -m tests.fakes.kafka_brokers COUNT TOPIC

librdkafka has a mock cluster inside, of which Python's client exposes only the start. We call the rest of it
by its C names. The first line that is printed has the addresses. Then each line of the input is a command,
and is repeated when it is done: `down 2` takes a broker away and gives the topic another leader, as Kafka's
controller would; `up 2` brings it back. All brokers share one log in memory: it is the protocol that is
tested, not what a broker stores.
"""

import ctypes
import sys
from pathlib import Path

import confluent_kafka

PRODUCER = 0
REPLICAS = 3
TEXT_MAX = 512

Pointer, Number, Text = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
FUNCTIONS: dict[str, tuple[type | None, list[type]]] = {
    "rd_kafka_conf_new": (Pointer, []),
    "rd_kafka_new": (Pointer, [Number, Pointer, Text, ctypes.c_size_t]),
    "rd_kafka_mock_cluster_new": (Pointer, [Pointer, Number]),
    "rd_kafka_mock_cluster_bootstraps": (Text, [Pointer]),
    "rd_kafka_mock_topic_create": (Number, [Pointer, Text, Number, Number]),
    "rd_kafka_mock_partition_set_leader": (Number, [Pointer, Text, ctypes.c_int32, ctypes.c_int32]),
    "rd_kafka_mock_broker_set_down": (Number, [Pointer, ctypes.c_int32]),
    "rd_kafka_mock_broker_set_up": (Number, [Pointer, ctypes.c_int32]),
}


def load() -> ctypes.CDLL:
    """The library that the wheel of confluent-kafka carries."""
    folder = Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs"
    (file,) = folder.glob("librdkafka-*")
    library = ctypes.CDLL(str(file))
    for name, (result, parameters) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters
    return library


class Brokers:
    def __init__(self, count: int, topic: str) -> None:
        self._library = load()
        self._topic = topic.encode()
        self._up = list(range(1, count + 1))
        why = ctypes.create_string_buffer(TEXT_MAX)
        handle = self._library.rd_kafka_new(PRODUCER, self._library.rd_kafka_conf_new(), why, TEXT_MAX)
        assert handle, why.value
        self._cluster = self._library.rd_kafka_mock_cluster_new(handle, count)
        self._check(self._library.rd_kafka_mock_topic_create(self._cluster, self._topic, 1, REPLICAS))
        self._lead(1)

    @property
    def addresses(self) -> str:
        return str(self._library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode())

    def down(self, broker: int) -> None:
        self._up.remove(broker)
        self._check(self._library.rd_kafka_mock_broker_set_down(self._cluster, broker))
        self._lead(self._up[0])

    def up(self, broker: int) -> None:
        self._up.append(broker)
        self._check(self._library.rd_kafka_mock_broker_set_up(self._cluster, broker))

    def _lead(self, broker: int) -> None:
        place = (self._cluster, self._topic, 0, broker)
        self._check(self._library.rd_kafka_mock_partition_set_leader(*place))

    def _check(self, error: int) -> None:
        assert error == 0, f"librdkafka returned {error}"


def main(count: int, topic: str) -> None:
    brokers = Brokers(count, topic)
    print(brokers.addresses, flush=True)
    for line in sys.stdin:
        word, number = line.split()
        {"down": brokers.down, "up": brokers.up}[word](int(number))
        print(line.strip(), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
