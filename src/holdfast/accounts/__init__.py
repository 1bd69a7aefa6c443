"""Accounts, roles, tokens, sessions and rate limits (R31, R32)."""

from holdfast.accounts.account import (
    LANGUAGES,
    Account,
    Email,
    Name,
    NewAccount,
    NewPassword,
    OldPassword,
    SignedIn,
    choose_language,
    digest,
    normal_email,
)
from holdfast.accounts.admin import AccountAdmin, ListedAccount
from holdfast.accounts.errors import (
    AccountBanned,
    BadCredentials,
    BadPasskey,
    EmailTaken,
    LinkGone,
    NoSecondFactor,
    NoSuchAccount,
    NoSuchSession,
    PasswordNeeded,
    SecondFactorExists,
    SecondFactorRequired,
    SignInExpired,
    StaffAccount,
    WrongCode,
    WrongPassword,
)
from holdfast.accounts.first_admin import FirstAdmin
from holdfast.accounts.locales import LANGUAGE_COOKIE, LOCALES, choose_locale, locale_for
from holdfast.accounts.mail_token import MailedToken, MailToken, PersonMail, Purpose
from holdfast.accounts.mail_tokens import MailTokens
from holdfast.accounts.passkeys import Passkeys
from holdfast.accounts.people import People
from holdfast.accounts.second_factor import FirstStep, PasskeyName, SecondStep
from holdfast.accounts.second_factors import SecondFactors
from holdfast.accounts.sessions import Session, Sessions
from holdfast.accounts.staff_log import record_account
from holdfast.accounts.store import Accounts, replace_signing_keys
from holdfast.accounts.token import SigningKey, claims_for, sign

__all__ = [
    "LANGUAGES",
    "LANGUAGE_COOKIE",
    "LOCALES",
    "Account",
    "AccountAdmin",
    "AccountBanned",
    "Accounts",
    "BadCredentials",
    "BadPasskey",
    "Email",
    "EmailTaken",
    "FirstAdmin",
    "FirstStep",
    "LinkGone",
    "ListedAccount",
    "MailToken",
    "MailTokens",
    "MailedToken",
    "Name",
    "NewAccount",
    "NewPassword",
    "NoSecondFactor",
    "NoSuchAccount",
    "NoSuchSession",
    "OldPassword",
    "PasskeyName",
    "Passkeys",
    "PasswordNeeded",
    "People",
    "PersonMail",
    "Purpose",
    "SecondFactorExists",
    "SecondFactorRequired",
    "SecondFactors",
    "SecondStep",
    "Session",
    "Sessions",
    "SignInExpired",
    "SignedIn",
    "SigningKey",
    "StaffAccount",
    "WrongCode",
    "WrongPassword",
    "choose_language",
    "choose_locale",
    "claims_for",
    "digest",
    "locale_for",
    "normal_email",
    "record_account",
    "replace_signing_keys",
    "sign",
]
