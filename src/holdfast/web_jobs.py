"""The jobs that every web process runs for itself, built on the application of app.py."""

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.backup import BEAT_PAUSE_S, LedgerMark
from holdfast.engines.loop import Job, Pause, label_with_pod
from holdfast.engines.machine_gauges import machine_jobs
from holdfast.engines.machine_settings import REPORT_PAUSE_S as MACHINES_PAUSE_S
from holdfast.engines.machine_settings import MachineSettings
from holdfast.engines.metrics import metrics
from holdfast.engines.replica import LOOK_PAUSE_S
from holdfast.house.store import REFRESH_PAUSE_S
from holdfast.pods import FOLLOW_S as DIRECTORY_PAUSE_S
from holdfast.replay import FLUSH_PAUSE_S
from holdfast.waitingroom.guard import FOLLOW_S
from holdfast.waitingroom.web_load import REPORT_PAUSE_S, LoadReporter

if TYPE_CHECKING:
    from holdfast.app import App


def web_jobs(app: "App") -> list[tuple[Pause, Job]]:
    """Those of the home database, and those of every pod."""
    if not app.router.has_pods:
        return [*home_jobs(app), *sale_jobs(app)]
    by_pod = {name or "home": sale_jobs(each) for name, each in app.router.by_name.items()}
    return [
        (DIRECTORY_PAUSE_S, app.router.directory.follow),
        *label_with_pod("home", home_jobs(app)),
        *(job for name, jobs in by_pod.items() for job in label_with_pod(name, jobs)),
    ]


def home_jobs(app: "App") -> list[tuple[Pause, Job]]:
    return [
        (app.config.revocations_refresh_s, app.accounts.catch_up),
        (REFRESH_PAUSE_S, app.house.refresh),
        (REFRESH_PAUSE_S, app.legal.refresh),
        (1.0, metrics.flush),
        *machine_jobs(app.postgres, app.redis, app.config),
        *([(LOOK_PAUSE_S, app.replica.look)] if app.replica else []),
    ]


def sale_jobs(app: "App") -> list[tuple[Pause, Job]]:
    return [
        (FOLLOW_S, app.waiting_rooms.guard.follow),
        (REPORT_PAUSE_S, build_load_reporter(app).report),
        (app.live.pause_s, app.live.follow),
        (app.live.pause_s, app.live.look),
        (FLUSH_PAUSE_S, app.demand.flush),
        (BEAT_PAUSE_S, build_ledger_mark(app).beat),
        (MACHINES_PAUSE_S, MachineSettings(app.redis, app.config).report),
    ]


def build_load_reporter(app: "App") -> LoadReporter:
    return LoadReporter(
        app.postgres,
        app.waiting_rooms.guard,
        app.live.viewers_of,
        payments_max=app.config.gateway_links_max,
    )


def build_ledger_mark(app: "App") -> LedgerMark:
    return LedgerMark(app.postgres, app.redis, Path(app.config.data_dir))
