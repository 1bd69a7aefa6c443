"""What "down" means: an engine that cannot be reached, or did not answer in time."""


class EngineDown(Exception):
    """`engine` is unreachable now.

    `unknown` is True when the request may have been carried out all the same: a dropped connection or a
    time-out after sending. Who needs to know asks again with the same request id.
    """

    def __init__(self, engine: str, *, unknown: bool = False, retry_after_s: int = 1) -> None:
        super().__init__(f"{engine} is down" + (" (outcome unknown)" if unknown else ""))
        self.engine = engine
        self.unknown = unknown
        self.retry_after_s = retry_after_s


class OperatorError(Exception):
    """Something expected is in the way. The text says what it is and what to do next, in one line."""
