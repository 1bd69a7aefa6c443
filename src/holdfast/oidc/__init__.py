"""Sign-in with OpenID Connect providers that the operator configures (R31)."""

from holdfast.oidc.errors import (
    AddressNotProved,
    IdentityTaken,
    NoSuchProvider,
    ProviderDown,
    SignInNotFinished,
)
from holdfast.oidc.provider import Attempt, Provider, ProviderClaims
from holdfast.oidc.store import Identities, LinkedIdentity

__all__ = [
    "AddressNotProved",
    "Attempt",
    "Identities",
    "IdentityTaken",
    "LinkedIdentity",
    "NoSuchProvider",
    "Provider",
    "ProviderClaims",
    "ProviderDown",
    "SignInNotFinished",
]
