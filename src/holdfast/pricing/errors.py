"""Refusals about prices, fees and price rules. No I/O."""

from holdfast.errors import Refusal


class FeeTooHigh(Refusal):
    """The fee is more than the cheapest seat costs without its tax: nothing would be left for the seat.

    Prices are all-in: the fee is a part of them. `net_minor` is the most it can be. Lower it, or raise the
    price, or the floor of the rules that it follows; seats that cost nothing have no fee.
    """

    code, status, title = "fee_too_high", 422, "The fee is more than the seat costs"


class BadPriceRules(Refusal):
    """The price rules contradict themselves or the show. Nothing was changed.

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


class UnknownCategory(Refusal):
    """A price was given for a category that the layout of the hall does not have.

    `known` lists the categories that it has.
    """

    code, status, title = "unknown_category", 422, "Unknown category"


class UnpricedCategory(Refusal):
    """Every category of the layout needs a price. `categories` lists those without; free seats cost 0."""

    code, status, title = "unpriced_category", 422, "Category without a price"
