"""Which gateway a configuration selects, and the message for an incomplete one."""

import subprocess
import sys
from typing import Any

import pytest

from holdfast.config import Config
from holdfast.engines.errors import OperatorError
from holdfast.payments.gateways import open_gateway

STRIPE = {"gateway": "stripe", "stripe_secret_key": "sk_live_1"}
RAZORPAY = {"gateway": "razorpay", "razorpay_key_id": "rzp_live_1", "razorpay_key_secret": "s"}


@pytest.mark.parametrize("settings", [{}, STRIPE, RAZORPAY])
async def test_each_gateway_is_made_from_its_settings(settings: dict[str, Any]) -> None:
    gateway = open_gateway(Config(**settings))

    assert gateway.name == settings.get("gateway", "sandbox")
    assert gateway.mode == ("live" if settings else "test")
    await gateway.close()


@pytest.mark.parametrize("settings", [STRIPE | {"stripe_secret_key": "rk_test_1"}, RAZORPAY])
async def test_the_mode_follows_from_the_key(settings: dict[str, Any]) -> None:
    gateway = open_gateway(Config(**settings))

    assert gateway.mode == ("test" if settings["gateway"] == "stripe" else "live")
    await gateway.close()


@pytest.mark.parametrize(
    "settings, wanted",
    [
        ({"gateway": "paypal"}, "stripe, razorpay, sandbox, none"),
        (STRIPE | {"stripe_secret_key": ""}, "HOLDFAST_STRIPE_SECRET_KEY"),
        (STRIPE | {"stripe_secret_key": "pk_live_1"}, "HOLDFAST_STRIPE_SECRET_KEY"),
        (RAZORPAY | {"razorpay_key_id": ""}, "HOLDFAST_RAZORPAY_KEY_ID"),
        (RAZORPAY | {"razorpay_key_secret": ""}, "HOLDFAST_RAZORPAY_KEY_SECRET"),
    ],
)
def test_a_missing_setting_is_reported_in_one_line(settings: dict[str, Any], wanted: str) -> None:
    with pytest.raises(OperatorError, match=wanted) as trouble:
        open_gateway(Config(**settings))

    assert "\n" not in str(trouble.value)
    assert "pk_live_1" not in str(trouble.value)


WITHOUT = """
import sys
sys.modules["{name}"] = None
from holdfast.config import Config
from holdfast.engines.errors import OperatorError
from holdfast.payments.gateways import open_gateway
try:
    open_gateway(Config(**{settings!r}))
except OperatorError as trouble:
    print(trouble)
"""


@pytest.mark.parametrize("settings", [STRIPE, RAZORPAY], ids=["stripe", "razorpay"])
def test_a_missing_sdk_is_named_with_its_package(settings: dict[str, Any]) -> None:
    program = WITHOUT.format(name=settings["gateway"], settings=settings)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert f"pip install 'holdfast[{settings['gateway']}]'" in ran.stdout


def test_an_unused_gateway_sdk_is_not_imported() -> None:
    program = "import sys, holdfast.app; print({'stripe', 'razorpay', 'requests'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "set()"


def test_no_repr_of_the_settings_contains_a_secret() -> None:
    secrets: dict[str, Any] = {
        name: f"never-{name}"
        for name in Config.__dataclass_fields__
        if name.endswith(("secret", "secrets", "secret_key"))
    }

    assert len(secrets) >= 5
    assert "never-" not in repr(Config(**secrets))
