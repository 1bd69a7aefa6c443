"""Who is at the desk: an admin sees everything, an organiser what is theirs and what is the house's.

No I/O."""

from dataclasses import dataclass

from holdfast.web.caller import Caller, Role


@dataclass(frozen=True, slots=True)
class Scope:
    account_id: int
    is_admin: bool

    @classmethod
    def of(cls, caller: Caller) -> "Scope":
        return cls(caller.account_id, caller.role is Role.ADMIN)

    @property
    def organiser_id(self) -> int | None:
        """As the queries want it: None for an admin, and for what an admin makes for the house."""
        return None if self.is_admin else self.account_id
