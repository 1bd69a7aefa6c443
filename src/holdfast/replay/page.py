"""The figures of a replay as rows of a table, and the replay as one HTML file that needs no network.

The file has its style, its script and its data inside. Its policy names the hashes of the first two, so that
nothing else runs, opened from a disk or from here.
"""

import re
from base64 import b64encode
from datetime import datetime
from functools import cache
from hashlib import sha256

from holdfast.replay.store import Replay
from holdfast.site.i18n import Localiser
from holdfast.site.templates_env import environment_for, static_files

SCRIPTS = ("tape", "map", "curve", "player")  # in the order in which they need each other
IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
EXPORT = re.compile(r"^export ", re.MULTILINE)
MINUTE_S, HOUR_S = 60, 3600


def build_rows(replay: Replay, l10n: Localiser) -> list[tuple[str, str]]:
    """Names and values, in the language of the reader and the time zone of the show."""
    figures, number = replay.sale.figures, l10n.number

    def when(at: datetime | None) -> str:
        return say_moment(at, replay.timezone, l10n) if at else l10n.t("replay.never")

    rows = [("first_sale", when(figures.first_sale_at))]
    rows += [(f"sold_{share}", when(at)) for share, at in figures.share_sold_at.items()]
    peak = l10n.t("replay.peak_value", count=figures.peak_holds)
    rows += [
        ("sold", l10n.t("replay.of_all", some=number(figures.sold), all=number(figures.seats))),
        ("holds", number(figures.holds)),
        ("peak", f"{peak} · {when(figures.peak_at)}" if figures.peak_at else peak),
        ("lapsed", number(figures.lapsed)),
        ("refused", number(figures.refused)),
    ]
    if figures.returned:
        rows.append(("returned", number(figures.returned)))
    if figures.refused and replay.labels:
        rows.append(("most_wanted", ", ".join(replay.labels)))
    if figures.queue_max is not None:
        rows.append(("queue_max", number(figures.queue_max)))
    if figures.longest_wait_s is not None:
        rows.append(("longest_wait", say_length(figures.longest_wait_s, l10n)))
    return [(l10n.t(f"replay.{name}"), value) for name, value in rows]


def say_moment(at: datetime, timezone: str, l10n: Localiser) -> str:
    """With seconds: many sales are decided in a few of them."""
    return f"{l10n.day(at, timezone, 'MMMEd')}, {l10n.clock(at, timezone)}"


def say_length(seconds: int, l10n: Localiser) -> str:
    if seconds < MINUTE_S:
        return l10n.t("replay.seconds", count=seconds)
    if seconds < HOUR_S:
        return l10n.t("replay.minutes", count=seconds // MINUTE_S)
    return l10n.t("replay.hours", hours=seconds // HOUR_S, minutes=seconds % HOUR_S // MINUTE_S)


def render_file(replay: Replay, l10n: Localiser) -> bytes:
    """For a thread: some hundredths of a second for a stadium."""
    style, script = read_style(), read_script()
    text = (
        environment_for(l10n.language)
        .get_template("desk/replay_file.html")
        .render(
            l10n=l10n,
            t=l10n.t,
            replay=replay,
            rows=build_rows(replay, l10n),
            period=say_period(replay, l10n),
            texts=l10n.texts_for_scripts("replay.say_"),
            policy=file_policy(),
            style=style,
            script=script,
            document=replay.document.decode().replace("<", "\\u003c"),
        )
    )
    return text.encode()


def file_headers(show_id: int) -> dict[str, str]:
    """It is saved, not shown here."""
    return {
        "Cache-Control": "no-store",
        "Content-Disposition": f'attachment; filename="replay-{show_id}.html"',
        "Content-Security-Policy": f"{file_policy()}; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
    }


@cache
def file_policy() -> str:
    """It runs its own script and nothing else, and reaches no network."""
    return f"default-src 'none'; script-src '{_hash(read_script())}'; style-src '{_hash(read_style())}'"


def say_period(replay: Replay, l10n: Localiser) -> str:
    figures = replay.sale.figures
    ends = [say_moment(at, replay.timezone, l10n) for at in (figures.began_at, figures.ended_at)]
    return " – ".join(dict.fromkeys(ends))


@cache
def read_script() -> str:
    """The modules of the player as one: a page from a disk cannot import others."""
    texts = [static_files()[f"js/replay/{name}.js"].content.decode() for name in SCRIPTS]
    return "\n" + "".join(EXPORT.sub("", IMPORT.sub("", text)) for text in texts)


@cache
def read_style() -> str:
    return "\n" + "".join(static_files()[f"css/{name}.css"].content.decode() for name in ("base", "replay"))


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
