"""The gateway adapters, all behind one protocol. An SDK is imported only when its gateway is configured."""

from holdfast.config import Config
from holdfast.engines.errors import OperatorError
from holdfast.payments.gateway import Gateway

# Every name that HOLDFAST_GATEWAY can have. `none`: only free shows can be on sale.
GATEWAYS = ("stripe", "razorpay", "sandbox", "none")
EXTRAS = {"stripe": {"stripe"}, "razorpay": {"razorpay", "requests"}}  # modules that come with the extra


def open_gateway(config: Config) -> Gateway:
    """The configured gateway; OperatorError names the missing setting or package."""
    check_gateway(config)
    try:
        return _adapter(config)
    except ModuleNotFoundError as missing:
        if missing.name not in EXTRAS.get(config.gateway, ()):
            raise
        name = config.gateway
        raise OperatorError(f"the gateway {name} needs its SDK: pip install 'holdfast[{name}]'") from None


def _adapter(config: Config) -> Gateway:
    match config.gateway:
        case "sandbox":
            from holdfast.payments.gateways.sandbox import SandboxGateway

            return SandboxGateway(config)
        case "stripe":
            from holdfast.payments.gateways.stripe import StripeGateway

            return StripeGateway(config)
        case "razorpay":
            from holdfast.payments.gateways.razorpay import RazorpayGateway

            return RazorpayGateway(config)
        case "none":
            from holdfast.payments.gateways.none import NoGateway

            return NoGateway()
    raise AssertionError(f"{config.gateway} has no adapter")


def check_gateway(config: Config) -> None:
    """OperatorError names the wrong setting. Nothing is opened."""
    if config.gateway not in GATEWAYS:
        raise OperatorError(f"HOLDFAST_GATEWAY is {config.gateway!r}: it can be {', '.join(GATEWAYS)}")
    if config.gateway == "stripe" and not config.stripe_secret_key.startswith(("sk_", "rk_")):
        raise OperatorError("HOLDFAST_STRIPE_SECRET_KEY is not set, or is none: it begins with sk_ or rk_")
    if config.gateway == "razorpay" and not config.razorpay_key_id.startswith("rzp_"):
        raise OperatorError("HOLDFAST_RAZORPAY_KEY_ID is not set, or is none: it begins with rzp_")
    if config.gateway == "razorpay" and not config.razorpay_key_secret:
        raise OperatorError("HOLDFAST_RAZORPAY_KEY_SECRET is not set: it was shown when the key was made")
