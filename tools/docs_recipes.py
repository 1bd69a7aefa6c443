"""How tools/run_docs.py runs the blocks of docs/operating: what comes before a block, what replaces what.

No I/O.
"""

from dataclasses import dataclass, field

from tests.tidy.markdown_pages import Block


@dataclass(frozen=True)
class Recipe:
    """How the shell blocks of a page or section are run."""

    before: str = ""  # typed before the block
    given: dict[str, str] = field(default_factory=dict)  # in place of "…" and of what needs another company
    why_not: str = ""  # it cannot be run here
    is_marked: bool = False  # the page says that it is not runnable, by tests; here it is
    is_machine: bool = False  # it installs into /opt and /etc: run_docs_machine.sh
    within_s: int = 300


# What runs in the background ends with the block.
BACKGROUND = """
stop=()
trap 'kill "${stop[@]}"; wait "${stop[@]}"' EXIT
"""
# The doctor expects `holdfast work` somewhere, and a backup.
A_WORKER = f"""{BACKGROUND}
holdfast backup record --by pg_basebackup
rm -f worker.log
command holdfast work --json > worker.log & stop+=($!)
until [ -s worker.log ]; do sleep 0.1; done
# Its jobs take their turns, and take a while on a busy machine.
until HOLDFAST_GATEWAY=none holdfast doctor > /dev/null; do sleep 1; done
"""
# A site with the demo's programme, and one of its shows; `post` is a request of its organiser.
A_SITE = f"""{BACKGROUND}
rm -f site.log
command holdfast serve --port $SITE_PORT --workers 1 --json > site.log & stop+=($!)
until [ -s site.log ]; do kill -0 $!; sleep 0.1; done
site=http://127.0.0.1:$SITE_PORT
pick() {{ python3 -c "import json, sys; it = json.load(sys.stdin); print($1)"; }}
post() {{
    curl -s "$site/api/v1$1" -d "$2" \\
        -H 'content-type: application/json' -H "authorization: Bearer ${{token-}}"
}}
token=$(post /auth/login '{{"email": "organiser@holdfast.example", "password": "hold-fast-demo"}}' |
    pick 'it["access_token"]')
show=$(curl -s "$site/api/v1/events?size=100" | pick 'next(show["show_id"] for event in it["events"]
    for show in event["shows"] if show["sale_state"] == "ON_SALE" and show["from_price_minor"] > 0)')
"""
A_PASS = """
pass="{\\"shows\\": [$show], \\"gate\\": \\"Main door\\", \\"starts_at\\": \\"$(date --utc +%FT%TZ)\\"}"
code=$(post /admin/gate-passes "$pass" | pick 'it["code"]')
"""
AN_ORGANISER = """
echo hold-fast-demo | holdfast account add alice@example.com --role organiser --password-stdin
export REHEARSAL_PASSWORD=hold-fast-demo
"""
SMALL = "--admit-per-s 0.1 --accounts 4 --at-once 2 --level-s 1"
A_CERTIFICATE = """
live=/etc/letsencrypt/live/tickets.example
mkdir -p $live
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=tickets.example \\
    -keyout $live/privkey.pem -out $live/fullchain.pem 2> /dev/null
"""
# The engines of the one server under another name, with TLS.
ANOTHER_MACHINE = f"""{BACKGROUND}
echo 127.0.0.1 db.internal >> /etc/hosts
ca=/etc/ssl/db-ca.pem key=/etc/ssl/db-key.pem
openssl req -x509 -newkey rsa:2048 -nodes -days 90 -subj /CN=db.internal \\
    -addext subjectAltName=DNS:db.internal -keyout $key -out $ca 2> /dev/null
install -m 600 -o postgres $key $MACHINE_SOCKETS/key.pem
install -m 644 $ca $MACHINE_SOCKETS/ca.pem
runuser -u postgres -- psql -c "ALTER SYSTEM SET ssl_key_file = '$MACHINE_SOCKETS/key.pem'" \\
    -c "ALTER SYSTEM SET ssl_cert_file = '$MACHINE_SOCKETS/ca.pem'" -c "ALTER SYSTEM SET ssl = on" \\
    -c "SELECT pg_reload_conf()"
redis-server --port 0 --tls-port $TLS_PORT --bind 127.0.0.1 --tls-auth-clients no --requirepass secret \\
    --tls-cert-file $ca --tls-key-file $key --save '' > redis-tls.log & stop+=($!)
until grep -q Ready redis-tls.log; do sleep 0.1; done
password=$(sed -E 's|.*://holdfast:([^@]*)@.*|\\1|' /etc/holdfast/secrets/database_url)
holdfast() {{ /opt/holdfast/bin/holdfast "$@"; }}
"""
A_LAPTOP = "unset HOLDFAST_DATABASE_URL HOLDFAST_REDIS_URL; export HOLDFAST_DATA_DIR=$PWD/laptop"
FIT = "export HOLDFAST_GATEWAY=none"  # to the doctor, the sandbox is a fault of a house that sells
# A home of its own, with wal_level = logical, and a pod.
A_HOME = "export HOLDFAST_DATABASE_URL=$HOME_DATABASE_URL HOLDFAST_REDIS_URL=$HOME_REDIS_URL"
A_POD = {'"east=postgresql://holdfast@db-east/holdfast,redis://valkey-east/0"': '"$A_POD"'}
A_HOUSE = f'{A_HOME}\nexport HOLDFAST_PODS="$A_POD"\n'
A_RIGHT = """
grant='GRANT EXECUTE ON FUNCTION pg_create_restore_point(text) TO holdfast'
psql "${HOME_DATABASE_URL/holdfast@/postgres@}" -c "$grant"
"""


def extra(name: str) -> dict[str, str]:
    """The wheel under test instead of the one of an index."""
    return {f"pip install 'holdfast[{name}]'": f'pip install -q "$(echo $DIST/*.whl)[{name}]"'}


RECIPES = {
    "accounts.md": Recipe(
        before="holdfast account add omar@tickets.example --role fan --name Omar >/dev/null || true"
    ),
    "backup.md#backups": Recipe(
        before="unset HOLDFAST_DATABASE_URL HOLDFAST_REDIS_URL; holdfast serve --port 0"
    ),
    "backup.md#how-old-it-may-be": Recipe(),
    "backup.md#restored-postgresql-yourself-run-this": Recipe(),
    "door.md": Recipe(
        before=A_SITE + A_PASS,
        given={"https://tickets.example.com": "$site", "THE-CODE-OF-THE-PASS": '"$code" < <(echo /counts)'},
    ),
    "failures.md": Recipe(),
    "game_day.md#doctor-and-game-day": Recipe(before=FIT + A_WORKER),
    "game_day.md#game-day": Recipe(
        why_not="needs minutes, and the repository; `make gameday` runs tests/storms/test_game_day.py"
    ),
    "nginx.md#nginx-in-front": Recipe(before=A_CERTIFICATE, is_marked=True, is_machine=True),
    "notices.md": Recipe(given={"replay 4711": "replay --all-dead"}),
    "organisers.md": Recipe(),
    "payments.md": Recipe(given={"replay evt_123": "replay --all-dead"}),
    "pods.md#add-a-pod": Recipe(before=f"{A_HOME}\nholdfast demo --port 0", given=A_POD),
    "pods.md#backup-and-restore-of-a-house": Recipe(before=A_HOUSE + A_RIGHT),
    "pods.md": Recipe(before=A_HOUSE),
    "rehearsing.md": Recipe(
        before=A_SITE + AN_ORGANISER,
        given={
            "REHEARSAL_PASSWORD=… ": "",
            "http://127.0.0.1:8000": "$site",
            "--show 7": "--show $show",
            "--admit-per-s 20": SMALL,
        },
    ),
    "retention.md": Recipe(given={**extra("archive"), "/srv/archive": '"$PWD/archive"'}),
    "running.md#running": Recipe(before=A_WORKER, given={"HOLDFAST_GATEWAY=stripe": "HOLDFAST_GATEWAY=none"}),
    "running.md": Recipe(),
    "sandbox.md": Recipe(),
    "secrets.md#postgresql": Recipe(before="LEDGER=$ADMIN_DATABASE_URL", is_marked=True),
    "secrets.md#redis-and-valkey": Recipe(
        before='valkey-cli() { redis-cli -u "$HOLDFAST_REDIS_URL" "$@"; }\n'
        "valkey-cli ACL SETUSER holdfast on '>old-password' '~*' +@all",
        is_marked=True,
    ),
    "sign_in_services.md": Recipe(before="cat > /dev/null <<END", given={"]'": "]'\nEND"}),
    "sizes.md#two-servers": Recipe(
        before=ANOTHER_MACHINE,
        given={
            ":…@db.internal:5432": ":'$password'@db.internal:'$PGPORT'",
            ":…@db.internal:6380": ":secret@db.internal:'$TLS_PORT'",
            "HOLDFAST_GATEWAY=stripe HOLDFAST_STRIPE_SECRET_KEY=sk_live_…": "HOLDFAST_GATEWAY=none",
        },
        is_machine=True,
    ),
    "sizes.md#with-systemd": Recipe(
        given={"@127.0.0.1/": "@127.0.0.1:$PGPORT/", "redis://127.0.0.1/0": "$MACHINE_REDIS_URL"},
        is_marked=True,
        is_machine=True,
    ),
    "sizes.md#restoring": Recipe(is_marked=True, is_machine=True),
    "sizes.md#monitoring": Recipe(before="mkdir -p /etc/prometheus", is_marked=True, is_machine=True),
    "sizes.md#laptop": Recipe(before=A_LAPTOP),
    "sizes.md#the-image": Recipe(before='cd "$REPOSITORY"', within_s=1800),
    "sizes.md#with-docker-compose cd": Recipe(
        is_marked=True, before='rm -rf compose; mkdir compose; cp -r "$REPOSITORY"/deploy compose; cd compose'
    ),
    "sizes.md#four-sizes": Recipe(given=extra("simulation")),
    "sizes.md": Recipe(),
    "tracing.md": Recipe(given=extra("tracing"), before=A_LAPTOP),
    # The same release a second time: another one cannot be installed from here.
    "upgrading.md#before python3": Recipe(
        given={"holdfast-0.2.0-py3": "holdfast-*-py3"}, is_marked=True, is_machine=True
    ),
    "upgrading.md#before": Recipe(before="export RELEASE=/opt/holdfast-0.2.0", is_machine=True),
    "upgrading.md#several-machines": Recipe(is_marked=True, is_machine=True),
    "upgrading.md#the-way-back": Recipe(),
}


def recipe_names(block: Block) -> tuple[str, str, str]:
    """Of the section and the first word of the block, of the section, and of the page."""
    page = block.page.rpartition("/")[2]
    section = f"{page}#{block.section}"
    return f"{section} {block.text.split()[0]}", section, page


def find_recipe(block: Block) -> Recipe | None:
    found = next((RECIPES[name] for name in recipe_names(block) if name in RECIPES), None)
    return None if found and block.reason and not found.is_marked else found
