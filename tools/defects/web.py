"""Requests, logs, nginx, keys and what organisers send."""

from tools.defects.mutant import undo

CONNECTIONS = "tests/journeys/test_connection_limits.py"

MUTANTS = (
    undo(
        "a worker reads an endless head",
        f"{CONNECTIONS} -k head_that_is_too_long",
        (
            "src/holdfast/web/connections.py",
            "        if self._head_bytes > self.limits.head_bytes_max:\n",
            "        if False:\n",
        ),
        (
            "src/holdfast/web/connections.py",
            "        if self._fed_bytes > self.limits.head_bytes_max and self._head_size() >",
            "        if self._fed_bytes < 0 and self._head_size() >",
        ),
    ),
    undo(
        "a worker waits for half a head without end",
        f"{CONNECTIONS} -k half_a_head",
        (
            "src/holdfast/web/connections.py",
            "        self._timer = self.loop.call_later(self.limits.head_timeout_s, self._give_up)\n",
            "        self._timer = None\n",
        ),
    ),
    undo(
        "one address may have all connections of a worker",
        f"{CONNECTIONS} -k connection_too_many",
        (
            "src/holdfast/web/connections.py",
            "        is_full = 0 < self._per_address_max <= self._open[key]\n",
            "        is_full = False\n",
        ),
    ),
    undo(
        "links to tickets are in the log of the application",
        "tests/rules/test_log.py -k link",
        ("src/holdfast/web/log.py", '    return SECRET_LINK.sub(r"/\\1/-", line)\n', "    return line\n"),
    ),
    undo(
        "links to tickets are in the log of nginx",
        "tests/journeys/test_nginx_logs.py",
        ("deploy/nginx.conf", '"uri":"$logged_uri"', '"uri":"$uri"'),
    ),
    undo(
        "an organiser's address for replies may end with a line break",
        "tests/rules/test_final_newlines.py",
        (
            "src/holdfast/notifications/notice.py",
            r"(\.[A-Za-z0-9-]+)+)?$(?!\n)",
            r"(\.[A-Za-z0-9-]+)+)?$",
        ),
    ),
    undo(
        "a field of one line may end with a line break",
        "tests/rules/test_final_newlines.py",
        (
            "src/holdfast/fields.py",
            r'ONE_LINE = r"^[^\x00-\x1f\x7f]*$(?!\n)"',
            r'ONE_LINE = r"^[^\x00-\x1f\x7f]*$"',
        ),
    ),
    undo(
        "every probe of readiness looks at the engines",
        "tests/journeys/test_health.py -k many_probes",
        (
            "src/holdfast/web/health.py",
            "        return await self._cache.get((postgres, redis))\n",
            "        return await self._look((postgres, redis))\n",
        ),
    ),
    undo(
        "probes are not limited by nginx",
        "tests/journeys/test_nginx_addresses.py -k probes",
        (
            "deploy/nginx.conf",
            "        location = /readyz {\n            limit_req zone=probes burst=20 nodelay;\n",
            "        location = /readyz {\n",
        ),
    ),
    undo(
        "nginx counts each address of an IPv6 line written with :: for itself",
        "tests/journeys/test_nginx_addresses.py -k ipv6",
        (
            "deploy/nginx.conf",
            '        "~^(?<start>[0-9a-f]+:[0-9a-f]+:[0-9a-f]+)::" $start:0;\n',
            "",
        ),
    ),
    undo(
        "the nginx configuration needs folders that Debian does not have",
        "tests/journeys/test_nginx_addresses.py -k folders",
        (
            "deploy/nginx.conf",
            "    client_body_temp_path /var/lib/nginx/holdfast-body;\n",
            "    client_body_temp_path /var/cache/nginx/holdfast-body;\n",
        ),
    ),
    undo(
        "the session cookie has no __Host- prefix under https",
        "tests/journeys/test_site_cookies.py -k host_prefix",
        (
            "src/holdfast/site/cookies.py",
            "    name = HOST_SESSION if is_secure else SESSION\n",
            "    name = SESSION\n",
        ),
    ),
    undo(
        "client generators fail on the API document",
        "tests/rules/test_openapi.py -k suits_generators",
        (
            "src/holdfast/web/openapi.py",
            '    if node.get("items") is False:\n',
            "    if False:\n",
        ),
    ),
    undo(
        "POSTs ignore the Idempotency-Key unless they ask for it",
        "tests/rules/test_routing.py tests/journeys/test_organisers_systems.py"
        " -k 'TestIdempotencyKeys or once_per_idempotency_key'",
        (
            "src/holdfast/web/routing.py",
            '        options.setdefault("keyed", not is_bare and not options.get("takes_key", False))\n',
            "",
        ),
        (
            "src/holdfast/web/routing.py",
            "        assert not is_api_post or self.keyed or self.takes_key,",
            "        assert True,",
        ),
    ),
    undo(
        "a leaked key of access tokens cannot be revoked",
        "tests/stores/test_signing_keys.py -k leaked",
        (
            "src/holdfast/accounts/store.py",
            "            if revoke:\n                await replace_signing_keys(tx)\n            else:\n",
            "            if True:\n",
        ),
    ),
    undo(
        "codes of a revoked ticket key admit",
        "tests/stores/test_revoked_ticket_keys.py",
        (
            "src/holdfast/tickets/store.py",
            "            await tx.execute(Q.revoke_ticket_keys, show_id or 0)\n",
            "",
        ),
    ),
    undo(
        "“1 to 4” is one seat of that name",
        "tests/rules/test_importing.py -k would_be_one_seat",
        (
            "src/holdfast/layouts/import_file.py",
            "    return refuse_unclear_seats(decode_body(data))\n",
            "    return decode_body(data)\n",
        ),
    ),
    undo(
        "two rows on the same spot are not noticed",
        "tests/rules/test_importing.py -k same_spot",
        ("src/holdfast/layouts/import_checks.py", "    return found[:OVERLAPS_MAX]\n", "    return []\n"),
    ),
    undo(
        "labels of rows in a pretix plan are dropped",
        "tests/rules/test_importing.py -k labels_of_pretix",
        (
            "src/holdfast/layouts/import_file.py",
            "        label = _named(row.row_label, str(row.row_number).strip() or str(place))\n",
            "        label = str(row.row_number).strip() or str(place)\n",
        ),
    ),
    undo(
        "a second device with a used gate code learns that the code is wrong",
        "tests/journeys/test_gate.py tests/journeys/test_gate_staff.py tests/stores/test_door.py"
        " -k 'device or code'",
        (
            "src/holdfast/checkin/passes.py",
            "            raise DeviceTaken if is_taken else BadPassCode\n",
            "            raise BadPassCode\n",
        ),
    ),
    undo(
        "headers of limits cannot be read by scripts of other origins",
        "tests/rules/test_application.py",
        ("src/holdfast/web/responses.py", "EXPOSED_HEADERS = (\n", 'EXPOSED_HEADERS = b"etag" or (\n'),
    ),
    undo(
        "the access log has neither address nor account",
        "tests/journeys/test_card_numbers.py -k log_contains",
        ("src/holdfast/web/asgi.py", "                **_who(scope),\n", ""),
    ),
    undo(
        "the API document repeats every refusal",
        "tests/rules/test_openapi.py -k 'size_is_limited or share_is_a_component'",
        (
            "src/holdfast/web/openapi_problems.py",
            "in (codes for codes, uses in sets.items() if uses > 1):",
            "in (codes for codes, uses in sets.items() if uses > 10_000):",
        ),
    ),
    undo(
        "a show with a price can be put on sale without a gateway",
        "tests/journeys/test_no_gateway.py",
        ("src/holdfast/payments/errors.py", "        raise GatewayMissing\n", "        return\n"),
    ),
    undo(
        "a booking cannot be found by its reference",
        "tests/journeys/test_attendees.py -k 'is_found'",
        (
            "src/holdfast/attendees/term.py",
            "            for number in from_reference(show_id, self.text):\n",
            "            for number in ():\n",
        ),
    ),
    undo(
        "the refusal of an import names the wrong types",
        "tests/journeys/test_admin.py -k layouts_come_in",
        (
            "src/holdfast/organisers/api.py",
            """        raise WrongMediaType(detail=f"Expected one of {', '.join(IMPORT_MEDIA_TYPES)}.")\n""",
            "        raise WrongMediaType\n",
        ),
    ),
)
