"""The logs that a bus can be: engines/bus.py says what they have in common."""

from holdfast.engines.bus import Bus, BusPlace


def open_bus(place: BusPlace) -> Bus:
    """By the scheme of its address. Clients of engines that are not used are not imported."""
    match place.url.split(":", 1)[0]:
        case "nats" | "tls":
            from holdfast.engines.buses.nats import NatsBus

            return NatsBus(place)
        case "kafka":
            from holdfast.engines.buses.kafka import KafkaBus

            return KafkaBus(place)
    from holdfast.engines.buses.valkey import ValkeyBus

    return ValkeyBus(place)
