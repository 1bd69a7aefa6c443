"""From a demand to cores, memory, disk, bandwidth and cost, with every step of the arithmetic. No I/O."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil

from holdfast.simulation.coefficients import value_of
from holdfast.simulation.scenario import PEOPLE_MAX, SEATS_MAX, find_faults, given, share

MONTH_S = 30 * 86_400
TB, GB, MB = 10**12, 10**9, 10**6


@dataclass(frozen=True, kw_only=True)
class Workload:
    people: int = given(0, "people who come to one on-sale", most=10 * PEOPLE_MAX)
    seats: int = given(0, "seats of that on-sale", most=SEATS_MAX)
    sale_s: float = given(600, "its seats are sold within this", least=1)
    pages_each: float = given(2, "pages that each of these people opens in that time", most=1000)
    waiting_room: bool = given(True, "these people wait in a waiting room; without, they request at once")
    poll_s: float = given(10, "a waiting person asks for the status this often", least=0.1)
    burst_s: float = given(
        10, "without a waiting room, everybody sends a first request within this", least=0.1
    )
    tries: float = given(1.3, "hold requests of a person inside", least=1, most=1000)
    browse_per_s: float = given(0, "page views per second at the peak, beside all else", most=10**9)
    page_views_month: float = given(0, "page views per month", most=10**13)
    tickets_month: float = given(0, "tickets sold per month", most=10**11)
    bookings_day: float = given(0, "bookings per day", most=10**10)
    users: int = given(0, "people with a page open at the same time", most=10**9)
    think_s: float = given(30, "such a person opens another page this often", least=0.1)
    seats_per_order: float = given(2.15, "seats of a booking", least=1, most=10)
    peak: float = given(5, "the busiest minute over the mean of a month", least=1, most=1000)
    use: float = share(0.5, "share of a core that is planned to be used")
    cores_per_machine: int = given(8, "cores of a machine", least=1, most=1024)
    years: float = given(5, "how long bookings are stored", most=100)
    core_month: float = given(12, "price of a core per month", most=10**6)
    disk_gb_month: float = given(0.1, "price of a gigabyte of disk per month", most=10**6)
    traffic_gb: float = given(0.02, "price of a gigabyte sent", most=10**6)

    def faults(self) -> Iterator[str]:
        yield from find_faults(self)
        if not self.use:
            yield "--use 0.0: must be more than 0"

    @property
    def is_empty(self) -> bool:
        wanted = (self.people, self.seats, self.browse_per_s, self.page_views_month, self.tickets_month)
        return not any((*wanted, self.bookings_day, self.users))


@dataclass(frozen=True)
class Line:
    name: str
    arithmetic: str
    value: float
    unit: str

    def __str__(self) -> str:
        return f"{self.name}: {self.arithmetic} = {show(self.value)} {self.unit}".rstrip()


@dataclass
class Section:
    name: str
    lines: list[Line] = field(default_factory=list)

    def add(self, name: str, arithmetic: str, value: float, unit: str = "") -> float:
        """A line; one whose value is 0 is left out, because the demand has nothing of it."""
        if value:
            self.lines.append(Line(name, arithmetic, value, unit))
        return value


@dataclass(frozen=True)
class Load:
    """Per second, at the peak."""

    views: float
    polls: float
    requests: float
    purchases: float


def compute(workload: Workload) -> list[Section]:
    """Sections in the order in which each needs the ones before it."""
    sections = {name: Section(name) for name in ("Load at the peak", "Cores", "PostgreSQL", "Valkey")}
    sections |= {name: Section(name) for name in ("Memory", "Disk", "Bandwidth", "Cost per month")}
    load = _compute_load(workload, sections["Load at the peak"])
    workers, cores = _compute_cores(workload, load, sections["Cores"])
    _compute_postgres(load, workers, sections["PostgreSQL"])
    _compute_valkey(workload, load, sections["Valkey"])
    _compute_memory(workload, workers, sections["Memory"])
    disk_gb = _compute_disk(workload, sections["Disk"])
    traffic_gb = _compute_bandwidth(workload, load, sections["Bandwidth"])
    _compute_cost(workload, cores, disk_gb, traffic_gb, sections["Cost per month"])
    return [section for section in sections.values() if section.lines]


def _compute_load(workload: Workload, section: Section) -> Load:
    add, per_s = section.add, "per second"
    peak = f"× {show(workload.peak)} peak ÷ {MONTH_S:,} s"
    views = add("page views", "given", workload.browse_per_s, per_s)
    views += add(
        "page views of a month",
        f"{show(workload.page_views_month)} {peak}",
        workload.page_views_month * workload.peak / MONTH_S,
        per_s,
    )
    views += add(
        "page views of open pages",
        f"{show(workload.users)} people ÷ {show(workload.think_s)} s",
        workload.users / workload.think_s,
        per_s,
    )
    views += add(
        "page views of the on-sale",
        f"{show(workload.people)} people × {show(workload.pages_each)} ÷ {show(workload.sale_s)} s",
        workload.people * workload.pages_each / workload.sale_s,
        per_s,
    )
    polls = workload.people / workload.poll_s if workload.waiting_room else 0.0
    add(
        "polls of the waiting room",
        f"{show(workload.people)} people ÷ {show(workload.poll_s)} s",
        polls,
        per_s,
    )
    orders_s = workload.seats / workload.seats_per_order / workload.sale_s
    purchases = add(
        "purchases of the on-sale",
        f"{show(workload.seats)} seats ÷ {workload.seats_per_order} per order ÷ {show(workload.sale_s)} s",
        orders_s,
        per_s,
    )
    purchases += add(
        "purchases of a month",
        f"{show(workload.tickets_month)} tickets ÷ {workload.seats_per_order} per order {peak}",
        workload.tickets_month / workload.seats_per_order * workload.peak / MONTH_S,
        per_s,
    )
    purchases += add(
        "bookings of a day",
        f"{show(workload.bookings_day)} × {show(workload.peak)} peak ÷ 86,400 s",
        workload.bookings_day * workload.peak / 86_400,
        per_s,
    )
    if workload.waiting_room or not workload.people:
        arithmetic = f"{show(purchases)} purchases × {workload.tries} tries"
        requests = add("hold requests", arithmetic, purchases * workload.tries, per_s)
    else:
        arithmetic = f"{show(workload.people)} people ÷ {show(workload.burst_s)} s"
        requests = add("hold requests", arithmetic, workload.people / workload.burst_s, per_s)
    return Load(views, polls, requests, purchases)


def _compute_cores(workload: Workload, load: Load, section: Section) -> tuple[int, float]:
    """Web workers, and cores of everything."""

    def add(name: str, count: float, coefficient: str) -> float:
        each = value_of(coefficient)
        return section.add(name, f"{show(count)} ÷ {show(each)} {coefficient}", count / each, "cores")

    nginx = add("nginx: cached pages and polls", load.views + load.polls, "cached answers per core")
    refused = max(0.0, load.requests - load.purchases)
    web = add("requests that find no seats", refused, "refusals per core")
    web += add("purchases: hold, payment, ticket, mail", load.purchases, "purchases per core")
    total = (nginx + web) / workload.use
    section.add("cores", f"({show(nginx)} + {show(web)}) ÷ {workload.use:g} use", total, "cores")
    machines = max(1, ceil(total / workload.cores_per_machine))
    cores = machines * workload.cores_per_machine
    arithmetic = f"{show(total)} ÷ {workload.cores_per_machine} cores, rounded up"
    section.add("machines", arithmetic, machines, f"of {workload.cores_per_machine} cores")
    workers = max(2, ceil(web / workload.use))
    section.add("web workers", f"{show(web)} ÷ {workload.use:g} use, rounded up, at least 2", workers)
    return workers, cores


def _compute_postgres(load: Load, workers: int, section: Section) -> None:
    per_purchase, log = value_of("transactions per purchase"), value_of("log per purchase")
    links = value_of("connections per process")
    purchases = show(load.purchases)
    section.add(
        "transactions, at most",
        f"{purchases} purchases × {per_purchase}",
        load.purchases * per_purchase,
        "per second",
    )
    arithmetic = f"{purchases} purchases × {show(log)} bytes"
    section.add("write-ahead log", arithmetic, load.purchases * log / MB, "MB per second")
    arithmetic = f"({workers} web workers + 1 background worker) × {show(links)}"
    section.add("connections", arithmetic, (workers + 1) * links)


def _compute_valkey(workload: Workload, load: Load, section: Section) -> None:
    scripts = value_of("scripts per purchase")
    total = load.requests + load.purchases * (scripts - 1)
    arithmetic = f"{show(load.requests)} requests + {show(load.purchases)} purchases × {show(scripts - 1)}"
    section.add("scripts", arithmetic, total, "per second")
    limit = value_of("claims of Valkey")
    section.add("of its one thread", f"{show(total)} ÷ {show(limit)} × 100", total / limit * 100, "%")
    per_seat = value_of("map per seat")
    arithmetic = f"{show(workload.seats)} seats × {per_seat} bytes"
    section.add("seat map", arithmetic, workload.seats * per_seat / MB, "MB")


def _compute_memory(workload: Workload, workers: int, section: Section) -> None:
    worker, layout = value_of("web worker"), value_of("layout per seat")
    total = section.add("web workers", f"{workers} × {show(worker)} MB", workers * worker, "MB")
    arithmetic = f"{workers} × {show(workload.seats)} seats × {show(layout)} bytes"
    total += section.add("layouts", arithmetic, workers * workload.seats * layout / MB, "MB")
    total += section.add("background worker", "one", value_of("background worker"), "MB")
    waiting = workload.people if workload.waiting_room else 0
    each = value_of("person in the queue")
    arithmetic = f"{show(waiting)} people × {show(each)} bytes"
    total += section.add("waiting room", arithmetic, waiting * each / MB, "MB")
    total += section.add("PostgreSQL", "its cache", value_of("cache of PostgreSQL"), "MB")
    section.add("memory", "sum", total / 1000, "GB")


def _compute_disk(workload: Workload, section: Section) -> float:
    orders_day = workload.tickets_month / workload.seats_per_order / 30 + workload.bookings_day
    once = workload.seats / workload.seats_per_order
    total = orders_day * 365 * workload.years + once
    stays, passes = value_of("disk per purchase"), value_of("passing disk per purchase")
    days = value_of("facts and mails stay")
    if orders_day:
        section.add("bookings per day", "from the demand", orders_day)
    arithmetic = f"{show(orders_day)} × 365 days × {show(workload.years)} years + {show(once)} of the on-sale"
    section.add("bookings stored", arithmetic, total)
    found = section.add("tables", f"{show(total)} × {show(stays)} bytes", total * stays / GB, "GB")
    passing = orders_day * days + once
    arithmetic = f"{show(passing)} bookings × {show(passes)} bytes"
    found += section.add(
        f"facts, mails, webhooks of {show(days)} days", arithmetic, passing * passes / GB, "GB"
    )
    if found >= 1000:
        section.add("disk", "sum", found / 1000, "TB")
    else:
        section.add("disk", "sum", found, "GB")
    return found


def _compute_bandwidth(workload: Workload, load: Load, section: Section) -> float:
    page, status = value_of("page"), value_of("status of the queue")
    pages_mbit = section.add(
        "pages", f"{show(load.views)} × {show(page)} bytes × 8", load.views * page * 8 / MB, "Mbit per second"
    )
    polls_mbit = section.add(
        "polls",
        f"{show(load.polls)} × {show(status)} bytes × 8",
        load.polls * status * 8 / MB,
        "Mbit per second",
    )
    section.add("bandwidth", "sum", (pages_mbit + polls_mbit) / 1000, "Gbit per second")
    month = workload.page_views_month * page / GB
    arithmetic = f"{show(workload.page_views_month)} pages × {show(page)} bytes"
    return section.add("sent per month", arithmetic, month, "GB")


def _compute_cost(
    workload: Workload, cores: float, disk_gb: float, traffic_gb: float, section: Section
) -> None:
    def add(name: str, count: str, price: float, total: float) -> float:
        return section.add(name, f"{count} × {price:g}", round(total, 2))

    total = add("cores", show(cores), workload.core_month, cores * workload.core_month)
    total += add("disk", f"{show(disk_gb)} GB", workload.disk_gb_month, disk_gb * workload.disk_gb_month)
    total += add("traffic", f"{show(traffic_gb)} GB", workload.traffic_gb, traffic_gb * workload.traffic_gb)
    section.add("cost", "sum", total)


def show(value: float) -> str:
    """Three digits that mean something: 2,000,000; 64.5; 0.0083."""
    if value == round(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
