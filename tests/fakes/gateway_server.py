"""Stripe's and Razorpay's APIs, imitated on the core of the sandbox gateway, beside the sandbox's own API."""

from contextlib import AbstractAsyncContextManager

from holdfast.sandbox.api import SandboxApplication
from holdfast.sandbox.process import SandboxSetup, open_sandbox
from tests.fakes.razorpay_api import razorpay_api
from tests.fakes.razorpay_event import render_razorpay_event
from tests.fakes.stripe_api import stripe_api
from tests.fakes.stripe_event import render_stripe_event

APIS = {"razorpay": razorpay_api, "stripe": stripe_api}
WEBHOOKS = {"razorpay": render_razorpay_event, "stripe": render_stripe_event}


def open_fake_gateways(setup: SandboxSetup) -> AbstractAsyncContextManager[SandboxApplication]:
    """Stripe's API under /stripe, Razorpay's under /razorpay; the end of notify_url picks the webhooks."""
    name = setup.notify_url.rpartition("/")[2]
    return open_sandbox(setup, apis=APIS, render=WEBHOOKS.get(name))
