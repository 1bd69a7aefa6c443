"""Accounts, mail to people, gate staff and limits of guests."""

from tools.defects.mutant import undo

ACCOUNTS = "src/holdfast/accounts"
SIGN_IN = "tests/journeys/test_site_account.py"

MUTANTS = (
    undo(
        "a ticket given to an address belongs to the first who signs up with it",
        "tests/journeys/test_tickets.py -k does_not_bring_the_ticket",
        (
            f"{ACCOUNTS}/account.py",
            "        return self.email if self.is_verified else None\n",
            "        return self.email\n",
        ),
    ),
    undo(
        "nginx does not limit the form that holds seats for guests",
        "tests/journeys/test_nginx.py -k forms_of_pages",
        (
            "deploy/nginx.conf",
            "+/hold$ {\n            limit_req zone=holds burst=40 nodelay;\n",
            "+/hold$ {\n            limit_req zone=browse burst=300 nodelay;\n",
        ),
    ),
    undo(
        "nginx does not limit the sign-in of the pages",
        "tests/journeys/test_nginx.py -k forms_of_pages",
        (
            "deploy/nginx.conf",
            "            limit_req zone=sign_in burst=20 nodelay;\n"
            "            limit_req zone=browse burst=300 nodelay;\n",
            "            limit_req zone=browse burst=300 nodelay;\n",
        ),
    ),
    undo(
        "an operator cannot make an administrator",
        "tests/journeys/test_first_start.py -k first_administrator",
        ("src/holdfast/cli/accounts.py", '@accounts.command("add")\n', ""),
    ),
    undo(
        "a banned person stays signed in",
        "tests/journeys/test_admin_accounts.py -k ban_signs_out",
        (
            f"{ACCOUNTS}/admin.py",
            "        self._accounts.refuse_version(account_id, version)\n"
            "        self._accounts.refuse_sessions(ended)\n",
            "",
        ),
    ),
    undo(
        "a forgotten password locks its account for good",
        "tests/journeys/test_site_people.py -k forgotten_password",
        (
            f"{ACCOUNTS}/people.py",
            "        await self._request(PersonMail.RESET_PASSWORD, normal_email(email), None, locale)\n",
            "        return\n",
        ),
    ),
    undo(
        "one address may guess at any number of accounts",
        "tests/stores/test_rate_limits.py -k address_has_so_many",
        (
            "src/holdfast/web/rate_limits.py",
            'Policy("login-address", address, config.logins_per_address_minute_max, MINUTE_S, "new")',
            'Policy("login-address", address, 0, MINUTE_S, "new")',
        ),
    ),
    undo(
        "an account may be guessed at from any number of addresses",
        "tests/stores/test_rate_limits.py -k tries_per_address_and_in_all",
        (
            "src/holdfast/web/rate_limits.py",
            'Policy("login-account", account, config.logins_per_account_hour_max, HOUR_S, "new")',
            'Policy("login-account", account, 0, HOUR_S, "new")',
        ),
    ),
    undo(
        "anyone can have mails sent to anyone",
        "tests/stores/test_mail_rules.py -k only_typed",
        (
            "src/holdfast/notifications/functions.sql",
            "    SELECT account.is_verified OR account.contact_at = '-infinity'\n",
            "    SELECT true OR account.is_verified OR account.contact_at = '-infinity'\n",
        ),
    ),
    undo(
        "an address gets any number of mails that prove it",
        "tests/stores/test_mail_rules.py -k 'few_mails_an_hour or same_moment'",
        (
            "src/holdfast/notifications/functions.sql",
            "kind IN ('ticket_got', 'confirm_address'))) >= 6 THEN\n",
            "kind IN ('ticket_got', 'confirm_address'))) >= 1000 THEN\n",
        ),
    ),
    undo(
        "any organiser can give passes to another one's door staff",
        "tests/journeys/test_gate_staff.py -k have_not_joined",
        (
            "src/holdfast/checkin/passes.sql",
            " WHERE member.organisation_id = $1 AND account.email = $2 AND ",
            " WHERE $1::bigint IS NOT NULL AND account.email = $2 AND ",
        ),
    ),
    undo(
        "the sign-in page does not say why one is there",
        f"{SIGN_IN} -k gives_its_reason",
        ("src/holdfast/site/account.py", 'came_from.why == "private"', "False"),
    ),
    undo(
        "the sign-in page shows its form to who is signed in",
        f"{SIGN_IN} -k names_the_account",
        (
            "src/holdfast/site/templates/account/sign_in.html",
            "  {% if session and not session.is_guest %}\n",
            "  {% if false %}\n",
        ),
    ),
    undo(
        "sign-up names one mistake at a time",
        f"{SIGN_IN} -k every_mistake",
        (
            "src/holdfast/site/account.py",
            "    return wrong if terms.is_agreed(data.agreed) else",
            "    return dict(list(wrong.items())[:1]) if wrong or terms.is_agreed(data.agreed) else",
        ),
    ),
    undo(
        "fields of the sign-in page are described by texts that do not exist",
        f"{SIGN_IN} -k texts_that_exist",
        (
            "src/holdfast/site/templates/account/fields.html",
            "{%- if hint or name in shown.wrong %} aria-describedby=",
            "{%- if true %} aria-describedby=",
        ),
        (
            "src/holdfast/site/templates/account/fields.html",
            '(name ~ "-wrong") if name in shown.wrong else ""',
            '(name ~ "-wrong")',
        ),
    ),
    undo(
        "the header does not show who is signed in",
        "tests/journeys/test_site_people.py -k header_shows",
        (
            "src/holdfast/site/templates/base.html",
            '      <span class="who-name">{{ session.account.name.split()[0] }}</span></a>\n',
            "      </a>\n",
        ),
    ),
)
