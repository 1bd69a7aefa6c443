"""Refusals of the organisers' desk about money and layouts.

Refusal
├── FeeTooHigh          422  the fee is more than the cheapest seat costs without its tax
├── BadPriceRules       422  price rules that cannot be meant; carries the field and the reason
├── PricedByRules       409  this category's price follows rules
└── LayoutUnsafe        409  the layout would change seats that somebody has, or their numbers
"""

from holdfast.refusals import Refusal


class FeeTooHigh(Refusal):
    """The fee is more than the cheapest seat costs without its tax: nothing would be left for the seat.

    Prices are all-in: the fee is a part of them. `net_minor` is the most it can be. Lower it, or raise the
    price, or the floor of the rules that it follows; seats that cost nothing have no fee.
    """

    code, status, title = "fee_too_high", 422, "The fee is more than the seat costs"


class BadPriceRules(Refusal):
    """These price rules cannot be meant. Nothing was changed.

    `field` is where and `reason` is what: `wrong_currency`, `category_twice`, `floor_above_ceiling`,
    `base_outside` (of floor and ceiling), `steps_overlap`, `step_before_the_sale`, `step_after_the_sale`,
    `unpayable_amount`. Correct it, preview, and set it again.
    """

    code, status, title = "bad_price_rules", 422, "The price rules contradict themselves"


class PricedByRules(Refusal):
    """The price of a category that you want to set follows rules, which would move it again.

    `categories` names them. Change `base_minor` of their rules (PUT …/price-rules), or take the rules away.
    """

    code, status, title = "priced_by_rules", 409, "This price follows rules"


class LayoutUnsafe(Refusal):
    """The layout cannot be taken over while tickets are sold from the one there is. Nothing was changed.

    `why_not` has the reasons. `seats_in_use`: somebody holds or has booked a seat that would be another, or
    it is blocked; `in_use` names them. `seats_gone`: leave them in the layout and name them in `withdraw`.
    `renumbered`: bring the layout in with `grows_from`, so that old seats keep their numbers.
    `categories_moved`: keep the categories in their order and add new ones behind.
    """

    code, status, title = "layout_unsafe", 409, "Seats in use would change"
