"""Password hashing: argon2id, salted, slow on purpose. No I/O.

A hash takes about 30 ms of a core and 19 MB (OWASP's first choice of parameters, July 2025). The 64 MB of
RFC 9106 would take a sixth of the memory of the whole demo for each login at the same time.
"""

import unicodedata

from argon2 import PasswordHasher, Type
from argon2.exceptions import VerifyMismatchError

HASHER = PasswordHasher(
    type=Type.ID, time_cost=2, memory_cost=19_456, parallelism=1, hash_len=32, salt_len=16
)

# Checked when there is no such account, so that "no such account" takes as long as "wrong password".
# Made with HASHER of a password that was thrown away; a test compares the parameters.
DUMMY_HASH = (
    "$argon2id$v=19$m=19456,t=2,p=1$hk9djrhsIrRHxJsF/EFUxg$w65ktN8UdD4w3NWpSbHuj26e2SbQHrU20kDKAlfFRo0"
)


def hashed(password: str) -> str:
    return HASHER.hash(_spelt_alike(password))


def matches(password_hash: str, password: str) -> bool:
    try:
        return HASHER.verify(password_hash, _spelt_alike(password))
    except VerifyMismatchError:
        return False


def is_dated(password_hash: str) -> bool:
    """Made with other parameters than today's: rehash at the next login, while the password is at hand."""
    return HASHER.check_needs_rehash(password_hash)


def _spelt_alike(password: str) -> str:
    """The same password typed on another keyboard may come as other code points (NIST SP 800-63B)."""
    return unicodedata.normalize("NFKC", password)
