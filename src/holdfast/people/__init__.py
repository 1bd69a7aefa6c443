"""Who is asking, and how often they may (R31, R32).

account.py   roles, accounts, callers        password.py  how passwords are kept
token.py     signed access tokens            limits.py    how often somebody may ask
field.py     what people type                store.py     accounts, sessions, keys
visits       people with a browser; guests   routes.py    /accounts, /auth/…, /me
"""

from holdfast.people.account import (
    LANGUAGES,
    Account,
    Caller,
    NewAccount,
    Role,
    SignedIn,
    allows,
    language_of,
    normal_email,
)
from holdfast.people.field import Email, Name, NewPassword
from holdfast.people.limits import Limiter, limit_headers
from holdfast.people.store import People
from holdfast.people.token import Claims, SigningKey, claims_for, sign
from holdfast.people.visits.store import Visits
from holdfast.people.visits.visit import Visit

__all__ = [
    "LANGUAGES",
    "Account",
    "Caller",
    "Claims",
    "Email",
    "Limiter",
    "Name",
    "NewAccount",
    "NewPassword",
    "People",
    "Role",
    "SignedIn",
    "SigningKey",
    "Visit",
    "Visits",
    "allows",
    "claims_for",
    "language_of",
    "limit_headers",
    "normal_email",
    "sign",
]
