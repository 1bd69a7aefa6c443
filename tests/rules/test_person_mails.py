"""Mails about accounts and gifts: no names to strangers, one link, the same in every language (R29)."""

from dataclasses import replace

import pytest

from holdfast.accounts import LANGUAGES
from holdfast.notifications.message_data import load_templates
from holdfast.notifications.notice import PERSON_KINDS, NoticeKind
from holdfast.notifications.render import MessageData, compose_message, render_text
from holdfast.notifications.sample_data import SAMPLE


@pytest.mark.parametrize("locale", LANGUAGES)
def test_a_sender_without_a_name_is_not_named(locale: str) -> None:
    """To an address that is not proved: a sender could write anything as their name."""
    contents = replace(SAMPLE, other="", name="")
    waiting = compose_message(NoticeKind.TICKET_GOT, contents, locale, load_templates())

    text = render_text(waiting, load_templates())
    assert SAMPLE.other not in text + waiting.subject
    assert SAMPLE.name not in text


@pytest.mark.parametrize("locale", LANGUAGES)
@pytest.mark.parametrize("kind", sorted(PERSON_KINDS))
def test_it_names_the_address_and_has_at_most_one_link(kind: NoticeKind, locale: str) -> None:
    contents = MessageData(
        name="", base="https://hall.example", email="zoe@example.org", link_path="/link/secret"
    )
    text = render_text(compose_message(kind, contents, locale, load_templates()), load_templates())

    links = {NoticeKind.CONFIRM_ADDRESS, NoticeKind.RESET_PASSWORD, NoticeKind.SIGN_IN_LINK}
    has_link = kind in {*links, NoticeKind.INVITATION}
    assert "zoe@example.org" in text
    assert text.count("https://") == text.count("https://hall.example/link/secret") == has_link


@pytest.mark.parametrize("locale", LANGUAGES)
def test_an_address_with_an_account_gets_no_link_that_confirms_it(locale: str) -> None:
    contents = MessageData(name="", base="https://hall.example", email="zoe@example.org", is_taken=True)
    message = compose_message(NoticeKind.CONFIRM_ADDRESS, contents, locale, load_templates())

    assert message.link == "https://hall.example/sign-in"
