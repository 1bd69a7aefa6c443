"""Accounts, roles, tokens, sessions and rate limits (R31, R32)."""

from holdfast.accounts.account import (
    LANGUAGES,
    Email,
    Name,
    NewAccount,
    NewPassword,
    SignedIn,
    choose_language,
    normal_email,
)
from holdfast.accounts.errors import BadCredentials, EmailTaken, WrongPassword
from holdfast.accounts.locales import LANGUAGE_COOKIE, LOCALES, choose_locale, locale_for
from holdfast.accounts.sessions import Session, Sessions
from holdfast.accounts.store import Accounts, replace_signing_keys
from holdfast.accounts.token import SigningKey, claims_for, sign

__all__ = [
    "LANGUAGES",
    "LANGUAGE_COOKIE",
    "LOCALES",
    "Accounts",
    "BadCredentials",
    "Email",
    "EmailTaken",
    "Name",
    "NewAccount",
    "NewPassword",
    "Session",
    "Sessions",
    "SignedIn",
    "SigningKey",
    "WrongPassword",
    "choose_language",
    "choose_locale",
    "claims_for",
    "locale_for",
    "normal_email",
    "replace_signing_keys",
    "sign",
]
