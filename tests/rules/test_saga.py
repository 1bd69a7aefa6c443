"""The saga's table: every step, every answer, every time."""

from itertools import product

import pytest

from holdfast.payments.gateway import Answer
from holdfast.payments.saga import ENDS, NEXT, OVERTAKEN, Step, Time, due_step, next_step

AT_THE_GATEWAY = (Step.CHARGE, Step.LOOK_UP, Step.CALL_OFF, Step.WATCH)


def asked() -> list[tuple[Step, Answer, Time]]:
    """Whatever can come of asking a gateway. It never says ABSENT to a charge: then it has heard of it."""
    every = product(AT_THE_GATEWAY, Answer, Time)
    return [one for one in every if one[:2] != (Step.CHARGE, Answer.ABSENT)]


@pytest.mark.parametrize(("step", "answer", "time"), asked())
def test_every_answer_leads_somewhere(step: Step, answer: Answer, time: Time) -> None:
    assert isinstance(next_step(due_step(step, time), answer, time), Step)


@pytest.mark.parametrize(("step", "time"), list(product((Step.CHARGE, Step.LOOK_UP), Time)))
def test_nothing_is_charged_or_waited_for_when_time_is_up(step: Step, time: Time) -> None:
    assert (due_step(step, time) is step) == (time is Time.LEFT)
    assert time is Time.LEFT or due_step(step, time) is Step.CALL_OFF


@pytest.mark.parametrize("step", AT_THE_GATEWAY)
@pytest.mark.parametrize("time", Time)
def test_unknown_is_never_taken_for_a_no(step: Step, time: Time) -> None:
    """Seats may be given up at last, but the payment is watched: its money may still come."""
    after = next_step(step, Answer.UNKNOWN, time)

    assert after in {Step.LOOK_UP, Step.CALL_OFF, Step.WATCH}
    assert (after is Step.WATCH) == (step is Step.WATCH or (step is Step.CALL_OFF and time is Time.LONG_UP))


@pytest.mark.parametrize("time", Time)
def test_seats_go_only_after_the_gateway_was_told_to_forget_the_payment(time: Time) -> None:
    came_from = {step for step, answer, at in asked() if next_step(step, answer, at) is Step.LET_GO}

    assert came_from == {Step.CALL_OFF, Step.WATCH}
    assert next_step(Step.CALL_OFF, Answer.NO, time) is Step.CONFIRM


def test_calling_off_in_time_gives_the_hold_back() -> None:
    assert next_step(Step.CALL_OFF, Answer.YES, Time.LEFT) is Step.GIVE_BACK
    assert next_step(Step.CALL_OFF, Answer.ABSENT, Time.LEFT) is Step.GIVE_BACK
    assert next_step(Step.CALL_OFF, Answer.YES, Time.UP) is Step.LET_GO


def test_a_charge_nobody_has_heard_of_is_made_again_and_nothing_else_is() -> None:
    again = {(step, answer) for (step, answer), after in NEXT.items() if after is Step.CHARGE}

    assert again == {(Step.VERIFY, Answer.YES), (Step.LOOK_UP, Answer.ABSENT)}


def test_money_that_is_there_ends_as_a_booking_or_goes_back() -> None:
    """From CONFIRM on: every way ends in PAID, RETURNED or BY_HAND."""
    reached, todo = set(), [Step.CONFIRM]
    while todo:
        step = todo.pop()
        reached.add(step)
        todo += [after for (before, _), after in NEXT.items() if before is step and after not in reached]

    assert reached & ENDS == {Step.PAID, Step.RETURNED, Step.BY_HAND}
    assert not reached & set(AT_THE_GATEWAY)


def test_every_step_is_reached_and_the_ends_lead_nowhere() -> None:
    reached = set(NEXT.values()) | set(OVERTAKEN.values()) | {Step.WATCH, Step.CALLED_OFF, Step.VERIFY}

    assert reached == set(Step)
    assert not {step for step, _ in NEXT} & ENDS
