"""Every way the sandbox says no. Codes are stable; a wire puts them into the words of its gateway. No I/O."""


class Refused(Exception):
    def __init__(self, status: int, code: str, reason: str) -> None:
        super().__init__(f"{status} {code}")
        self.status = status
        self.code = code
        self.reason = reason
