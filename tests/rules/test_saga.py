"""The saga's table: every step, every answer, every time."""

from itertools import product

import pytest

from holdfast.payments.gateway import GatewayAnswer
from holdfast.payments.saga import ENDS, NEXT, OVERTAKEN, DeadlineStatus, PaymentStep, due_step, next_step

AT_THE_GATEWAY = (PaymentStep.CHARGE, PaymentStep.LOOK_UP, PaymentStep.CALL_OFF, PaymentStep.WATCH)


def all_answers() -> list[tuple[PaymentStep, GatewayAnswer, DeadlineStatus]]:
    """Every possible gateway answer per step. A charge never returns ABSENT: it creates the payment."""
    every = product(AT_THE_GATEWAY, GatewayAnswer, DeadlineStatus)
    return [one for one in every if one[:2] != (PaymentStep.CHARGE, GatewayAnswer.ABSENT)]


@pytest.mark.parametrize(("step", "answer", "time"), all_answers())
def test_every_answer_leads_somewhere(step: PaymentStep, answer: GatewayAnswer, time: DeadlineStatus) -> None:
    assert isinstance(next_step(due_step(step, time), answer, time), PaymentStep)


@pytest.mark.parametrize(
    ("step", "time"), list(product((PaymentStep.CHARGE, PaymentStep.LOOK_UP), DeadlineStatus))
)
def test_nothing_is_charged_or_waited_for_when_time_is_up(step: PaymentStep, time: DeadlineStatus) -> None:
    assert (due_step(step, time) is step) == (time is DeadlineStatus.LEFT)
    assert time is DeadlineStatus.LEFT or due_step(step, time) is PaymentStep.CALL_OFF


@pytest.mark.parametrize("step", AT_THE_GATEWAY)
@pytest.mark.parametrize("time", DeadlineStatus)
def test_unknown_is_never_taken_for_a_no(step: PaymentStep, time: DeadlineStatus) -> None:
    """Seats may be given up at last, but the payment is watched: its money may still come."""
    after = next_step(step, GatewayAnswer.UNKNOWN, time)

    assert after in {PaymentStep.LOOK_UP, PaymentStep.CALL_OFF, PaymentStep.WATCH}
    assert (after is PaymentStep.WATCH) == (
        step is PaymentStep.WATCH or (step is PaymentStep.CALL_OFF and time is DeadlineStatus.LONG_UP)
    )


@pytest.mark.parametrize("time", DeadlineStatus)
def test_seats_are_released_only_after_the_gateway_was_requested_to_cancel(time: DeadlineStatus) -> None:
    came_from = {
        step for step, answer, at in all_answers() if next_step(step, answer, at) is PaymentStep.RELEASE
    }

    assert came_from == {PaymentStep.CALL_OFF, PaymentStep.WATCH}
    assert next_step(PaymentStep.CALL_OFF, GatewayAnswer.NO, time) is PaymentStep.CONFIRM


def test_cancelling_in_time_restores_the_hold() -> None:
    assert next_step(PaymentStep.CALL_OFF, GatewayAnswer.YES, DeadlineStatus.LEFT) is PaymentStep.GIVE_BACK
    assert next_step(PaymentStep.CALL_OFF, GatewayAnswer.ABSENT, DeadlineStatus.LEFT) is PaymentStep.GIVE_BACK
    assert next_step(PaymentStep.CALL_OFF, GatewayAnswer.YES, DeadlineStatus.UP) is PaymentStep.RELEASE


def test_only_a_charge_unknown_to_the_gateway_is_repeated() -> None:
    again = {(step, answer) for (step, answer), after in NEXT.items() if after is PaymentStep.CHARGE}

    assert again == {(PaymentStep.VERIFY, GatewayAnswer.YES), (PaymentStep.LOOK_UP, GatewayAnswer.ABSENT)}


def test_captured_money_ends_as_a_booking_or_a_refund() -> None:
    """From CONFIRM on: every way ends in PAID, RETURNED or BY_HAND."""
    reached, todo = set(), [PaymentStep.CONFIRM]
    while todo:
        step = todo.pop()
        reached.add(step)
        todo += [after for (before, _), after in NEXT.items() if before is step and after not in reached]

    assert reached & ENDS == {PaymentStep.PAID, PaymentStep.RETURNED, PaymentStep.BY_HAND}
    assert not reached & set(AT_THE_GATEWAY)


def test_every_step_is_reached_and_the_ends_lead_nowhere() -> None:
    reached = (
        set(NEXT.values())
        | set(OVERTAKEN.values())
        | {PaymentStep.WATCH, PaymentStep.CALLED_OFF, PaymentStep.VERIFY}
    )

    assert reached == set(PaymentStep)
    assert not {step for step, _ in NEXT} & ENDS
