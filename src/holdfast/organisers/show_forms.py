"""Requests and responses about an organiser's shows, their price rules and layout changes. No I/O."""

from datetime import datetime, timedelta
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.catalogue import OrphanRule, SaleState, Times
from holdfast.fields import AwareDatetime, Currency, HoldTtl, Id, Name, OrderSeats, OwnerSeats, PriceMinor
from holdfast.layouts import Recategorised, Renamed, UnsafeReason
from holdfast.organisers.forms import Form, Label, LayoutHash, Paging
from holdfast.pricing import BasisPoints, CardSeats, FeeMinor, PriceRules, RefundPolicy, Terms

Prices = Annotated[dict[Name, PriceMinor], Meta(min_length=1, max_length=64)]


class ShowsQuery(Paging, frozen=True, kw_only=True):
    event: Id | None = None


class NewShow(Form, frozen=True, kw_only=True):
    """Without `ends_at` it lasts as long as its event. By default the sale opens at once and closes at the
    start.

    Prices include fee and tax. Without a `refund_policy` the show uses the current one of its event.
    """

    event_id: Id
    hall_id: Id
    starts_at: AwareDatetime
    ends_at: AwareDatetime | None = None
    opens_at: AwareDatetime | None = None
    closes_at: AwareDatetime | None = None
    currency: Currency
    prices: Prices
    hold_ttl_s: HoldTtl | None = None
    owner_seats_max: OwnerSeats | None = None
    order_seats_max: OrderSeats | None = None
    orphan_rule: OrphanRule = OrphanRule.WARN
    fee_minor: FeeMinor = 0
    fee_bp: BasisPoints = 0
    tax_bp: BasisPoints = 0
    card_seats_max: CardSeats | None = None
    refund_policy: RefundPolicy | None = None
    published: bool = True  # false: a draft, which only you see and no one can buy

    def terms(self, of_event: RefundPolicy) -> Terms:
        return Terms(
            fee_minor=self.fee_minor,
            fee_bp=self.fee_bp,
            tax_bp=self.tax_bp,
            refund_policy=self.refund_policy or of_event,
            card_seats_max=self.card_seats_max,
        )

    def times(self, duration_min: int, now: datetime) -> Times:
        try:
            lasts_until = self.ends_at or self.starts_at + timedelta(minutes=duration_min)
        except OverflowError:  # the end of the year 9999; check() refuses that year
            lasts_until = self.starts_at
        return Times(
            starts_at=self.starts_at,
            ends_at=lasts_until,
            opens_at=self.opens_at or now,
            closes_at=self.closes_at or self.starts_at,
        )


class ShowChange(Form, frozen=True, kw_only=True):
    """`prices` replaces the prices of the categories it names. `cancelled` can be set, but not reset.

    A `refund_policy` of null means the current one of the event. Held seats keep their price and terms.
    """

    starts_at: AwareDatetime | UnsetType = UNSET
    ends_at: AwareDatetime | UnsetType = UNSET
    opens_at: AwareDatetime | UnsetType = UNSET
    closes_at: AwareDatetime | UnsetType = UNSET
    prices: Prices | UnsetType = UNSET
    hold_ttl_s: HoldTtl | UnsetType = UNSET
    owner_seats_max: OwnerSeats | UnsetType = UNSET
    order_seats_max: OrderSeats | UnsetType = UNSET
    orphan_rule: OrphanRule | UnsetType = UNSET
    fee_minor: FeeMinor | UnsetType = UNSET
    fee_bp: BasisPoints | UnsetType = UNSET
    tax_bp: BasisPoints | UnsetType = UNSET
    card_seats_max: CardSeats | UnsetType | None = UNSET
    refund_policy: RefundPolicy | UnsetType | None = UNSET
    layout_hash: LayoutHash | UnsetType = UNSET
    cancelled: bool | UnsetType = UNSET
    published: bool | UnsetType = UNSET  # false: hidden, and its sale is closed; tickets stay valid


class ShowRow(Struct, frozen=True, kw_only=True):
    """A stored show, to which a change is applied."""

    id: int
    event_id: int
    hall_id: int
    layout_hash: str
    starts_at: datetime
    ends_at: datetime
    opens_at: datetime
    closes_at: datetime
    currency: str
    hold_ttl_s: int
    owner_seats_max: int
    order_seats_max: int
    orphan_rule: OrphanRule
    cancelled: bool
    published: bool
    revision: int
    fee_minor: int
    fee_bp: int
    tax_bp: int
    card_seats_max: int | None
    refund_policy: RefundPolicy

    @property
    def times(self) -> Times:
        return Times(
            starts_at=self.starts_at, ends_at=self.ends_at, opens_at=self.opens_at, closes_at=self.closes_at
        )

    @property
    def terms(self) -> Terms:
        return Terms(**{name: getattr(self, name) for name in Terms.__struct_fields__})


class ManagedShow(ShowRow, frozen=True, kw_only=True):
    """A show as its organiser sees it. `sale_state` ignores free seats: see GET /shows/{show}."""

    title: str
    venue: str
    hall: str
    seats: int
    sale_state: SaleState
    prices: dict[str, int]


class ShowList(Struct, frozen=True, kw_only=True):
    total: int
    shows: list[ManagedShow]


class PlannedPrice(Struct, frozen=True, kw_only=True):
    """The current price of a category, and when time changes it next."""

    category: str
    price_minor: int
    follows_rules: bool
    until: datetime | None
    then_minor: int | None


class PriceChange(Struct, frozen=True, kw_only=True):
    """A price change of a category, effective from this revision on."""

    revision: int
    category: str
    was_minor: int | None  # null: the category was new
    price_minor: int
    why: str  # organiser: set by hand; rules: rules were set or removed; step: a rule changed it
    sold: int | None  # seats of the category sold at that time
    seats: int | None  # seats of the category for sale at that time
    actor_id: int | None  # null: changed by a rule
    at: datetime


class PricePlan(Struct, frozen=True, kw_only=True):
    show_id: int
    currency: str
    revision: int
    rules: PriceRules | None
    prices: list[PlannedPrice]
    changes: list[PriceChange]  # the newest first


WITHDRAWN_MAX = 1000  # seats withdrawn in one change


class LayoutChange(Form, frozen=True, kw_only=True):
    """A new layout, seats to withdraw, or both. `prices` contains the prices of new categories."""

    layout_hash: LayoutHash | UnsetType = UNSET
    withdraw: Annotated[tuple[Label, ...], Meta(max_length=WITHDRAWN_MAX)] = ()
    prices: Prices | UnsetType = UNSET


class SeatInUse(Struct, frozen=True):
    """A seat that the change would affect, and its state: held, paying, confirmed or blocked."""

    label: str
    state: str


class LayoutDiffPage(Struct, frozen=True, kw_only=True):
    """Counts are complete; lists contain at most a thousand seats."""

    show_id: int
    revision: int
    layout_hash: str  # the new layout
    seats: int
    added_total: int
    added: list[str]
    removed_total: int
    removed: list[str]  # not in the new layout, or withdrawn
    renamed_total: int
    renamed: list[Renamed]
    recategorised_total: int
    recategorised: list[Recategorised]
    renumbered_total: int
    renumbered: list[str]  # the same label at another number
    redrawn_total: int  # drawn elsewhere
    new_categories: list[str]
    in_use_total: int
    in_use: list[SeatInUse]  # affected seats that are held, booked or blocked
    is_safe: bool
    unsafe_reasons: list[UnsafeReason]
