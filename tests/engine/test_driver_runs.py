"""The loop as a process: cancelling, leaving, time and seeds."""

import pytest

from engine.acceptance import ExactRejection, NaiveThreshold
from engine.decode import decode
from engine.drafters import ModelDrafter, NoDraft, PromptLookup
from engine.lengths import FixedLength
from engine.models.callable import CallableModel
from engine.sampling import Sampling
from engine.values import Draft, Drafted, Finished, Started, Step
from tests.engine.toys import Pieces, Proposing, TickingClock, broken_model, random_model, script_model

PLAIN = Sampling(temperature=1)


@pytest.mark.parametrize("n_steps", [0, 1, 4])
def test_cancelling_takes_effect_before_the_next_step(n_steps):
    asked = []
    *events, finished = decode(
        random_model(1), NoDraft(), [0, 1], max_tokens=9, cancelled=lambda: asked.append(1) or len(asked) > n_steps
    )
    assert (finished.reason, finished.error, len(finished.ids)) == ("cancelled", "", n_steps)
    assert sum(isinstance(event, Step) for event in events) == n_steps


def test_caller_may_stop_reading_at_any_event():
    def start():
        return decode(random_model(1), ModelDrafter(random_model(2), 6), [0], max_tokens=5)

    for n_read in range(len(list(start()))):
        run = start()
        for _ in range(n_read):
            next(run)
        run.close()
        assert next(run, None) is None


def test_interrupt_is_not_taken_for_a_failure_of_the_model():
    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(decode(broken_model(interrupt, from_length=3), NoDraft(), [0]))


@pytest.mark.parametrize("rule", [ExactRejection(), NaiveThreshold(0.3)], ids=["exact", "naive"])
@pytest.mark.parametrize("sampling", [PLAIN, Sampling(temperature=0)], ids=str)
def test_same_seed_gives_the_same_events(rule, sampling):
    def events(seed):
        drafter = ModelDrafter(random_model(2), 6)
        return list(
            decode(
                random_model(1),
                drafter,
                [0, 3],
                rule=rule,
                sampling=sampling,
                seed=seed,
                max_tokens=30,
                clock=TickingClock(),
            )
        )

    assert events(3) == events(3)
    assert [event.ids for event in (events(3)[-1], events(4)[-1])].count(events(3)[-1].ids) == 1 + sampling.greedy


@pytest.mark.parametrize("prompt", [[0], [0, 1, 2]])
def test_times_of_the_prompt_and_the_steps_add_up_to_the_total(prompt):
    """Every time is a multiple of a quarter of a second here, so the sums are exact."""
    *events, finished = decode(
        random_model(1), ModelDrafter(random_model(2), 6), prompt, max_tokens=12, clock=TickingClock()
    )
    at = finished.prefill_seconds
    for step in (event for event in events if isinstance(event, Step)):
        at += step.draft_seconds + step.verify_seconds + step.overhead_seconds
        assert step.at_seconds == at
        assert min(step.draft_seconds, step.verify_seconds, step.overhead_seconds) > 0
    assert finished.total_seconds == at


def test_time_is_booked_where_it_is_spent():
    now = [0.0]

    def costing(model, seconds):
        def row(ids):
            now[0] += seconds
            return model.logits(ids)[0]

        return CallableModel(row, 26)

    script = script_model([1, 2, 3, 4, 5, 6])
    drafter = ModelDrafter(costing(script, 2.0), 26)
    settings = {"sampling": Sampling(temperature=0), "lengths": FixedLength(1), "max_tokens": 4}

    def held():
        now[0] += 500.0  # a pause

    events = decode(costing(script, 10.0), drafter, [0, 0], cancelled=held, clock=lambda: now[0], **settings)
    seen = []
    for event in events:
        now[0] += 1000.0  # the caller holds the run
        seen.append(event)
    (first, second), finished = [event for event in seen if isinstance(event, Step)], seen[-1]
    assert finished.prefill_seconds == 12.0  # one row of either model
    for step in (first, second):
        assert (step.draft_seconds, step.verify_seconds, step.overhead_seconds) == (2.0, 20.0, 0.0)
    assert (first.at_seconds, second.at_seconds, finished.total_seconds) == (34.0, 56.0, 56.0)


@pytest.mark.parametrize("prompt", [[0], [0, 1]])
def test_drafter_reads_the_prompt_before_the_steps_whatever_its_length(prompt):
    read = []

    class Reading(Proposing):
        def prepare(self, context):
            read.append(list(context))

    list(decode(random_model(1), Reading(Draft(note="nothing comes to mind")), prompt, max_tokens=3))
    assert read == [prompt]


def test_drafter_with_too_short_a_context_is_not_given_the_prompt():
    draft = random_model(2, context_length=2)
    *_, finished = decode(random_model(1), ModelDrafter(draft, 6), [0, 1, 2], max_tokens=2)
    assert finished.reason == "length"


def test_note_of_an_empty_draft_reaches_both_events():
    run = decode(random_model(1), Proposing(Draft(note="nothing comes to mind")), [0], max_tokens=2)
    notes = [event.note for event in run if isinstance(event, Drafted | Step)]
    assert notes[:2] == ["nothing comes to mind"] * 2


def test_guess_is_shown_before_it_is_verified():
    verified = []
    script = script_model([1, 2, 3, 4])
    target = CallableModel(lambda ids: verified.append(1) or script.logits(ids)[0], 26)
    run = decode(target, ModelDrafter(script, 26), [0], sampling=Sampling(0), max_tokens=4, tokenizer=Pieces())
    assert isinstance(next(run), Started)
    drafted = next(run)
    assert (drafted.tokens, drafted.texts, verified) == ((1, 2, 3), ("b", "c", "d"), [])
    assert isinstance(next(run), Step)
    assert len(verified) == 4


def test_length_policy_is_told_every_outcome():
    told = []

    class Telling(FixedLength):
        def observe(self, outcome):
            told.append((outcome.n_drafted, outcome.n_accepted, outcome.draft_seconds, outcome.verify_seconds))

    settings = {"sampling": PLAIN, "lengths": Telling(4), "max_tokens": 30, "clock": TickingClock()}
    *events, _ = decode(random_model(1, 3), PromptLookup(1), [0], **settings)
    assert told == [
        (step.n_drafted, step.n_accepted, step.draft_seconds, step.verify_seconds)
        for step in events if isinstance(step, Step)
    ]  # fmt: skip
    assert len({n_drafted for n_drafted, *_ in told}) > 2  # shorter than asked for, now and then


def test_run_by_a_simulated_clock_says_so():
    clock = TickingClock()
    clock.simulated = True
    assert next(decode(random_model(1), NoDraft(), [0], clock=clock)).simulated
    assert not next(decode(random_model(1), NoDraft(), [0])).simulated


def test_finished_carries_an_error_only_for_the_reason_error():
    finished = list(decode(random_model(1), NoDraft(), [0], max_tokens=2))[-1]
    assert isinstance(finished, Finished)
    assert (finished.reason, finished.error) == ("length", "")
