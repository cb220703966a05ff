"""Figures from events: a run worked by hand, pooling, empty denominators, and words about the drafter."""

import dataclasses

import pytest

from engine.decode import decode
from engine.drafters import ModelDrafter, NoDraft, PromptLookup
from engine.lengths import FixedLength
from engine.metrics import NEAR_TIE, Figures, PositionFigures, Tally, measure, ratio
from engine.sampling import Sampling
from engine.values import Decision, Drafted, Finished, Started, Step
from tests.engine.toys import random_model

OUTCOMES = {"A": "accepted", "R": "rejected", "U": "unreached", "B": "bonus", "P": "plain"}


def step(fates, at_seconds=0.0, *, index=0, note="", margin=None):
    """A step from letters, a star for what was discarded: `step("A A* R*")` drafted three and emitted one."""
    decisions = []
    for position, fate in enumerate(fates.split()):
        outcome = OUTCOMES[fate[0]]
        decisions.append(
            Decision(
                position,
                outcome,
                draft_token=None if fate[0] in "BP" else 7,
                target_token=None if fate[0] == "U" else 7,
                accepted=outcome == "accepted",
                discarded=fate.endswith("*"),
                margin=margin,
            )
        )
    n_emitted = sum(decision.target_token is not None and not decision.discarded for decision in decisions)
    draft_seconds = 0.0 if fates == "P" else 0.25
    return Step(
        index, 1, tuple(decisions), (7,) * n_emitted, draft_seconds, 1.0, 0.125, at_seconds, note, probe_seconds=0.0625
    )


BY_HAND = [
    Started("t", "model:d", "exact", True, 0, (1, 2)),
    step("A A R U", 0.5 + 1.375),
    step("A A A A B", 0.5 + 2 * 1.375),
    step("P", 0.5 + 2 * 1.375 + 1.125, note="one token is left"),
    step("R U", 0.5 + 3 * 1.375 + 1.125),
    step("A A* R*", 0.5 + 4 * 1.375 + 1.125),
    Finished("stop_string", (7,) * 11, "", 0.5, 7.125),
]


def test_run_worked_by_hand():
    assert measure(BY_HAND) == Figures(
        tokens_generated=3 + 5 + 1 + 1 + 1,
        steps=5,
        drafting_steps=4,
        drafted=4 + 4 + 2 + 3,
        accepted=2 + 4 + 0 + 2,
        rejected=3,
        declined=0,
        unreached=2,
        recovered=3,
        bonus=1,
        plain=1,
        discarded=2,
        acceptance_rate=8 / 13,
        per_token_acceptance=8 / 11,
        tokens_per_step=11 / 5,
        target_calls_saved=6,
        accepted_length_histogram=(1, 0, 2, 0, 1),
        per_position=(
            PositionFigures(1, 4, 4, 3, 3 / 4, 3 / 4),
            PositionFigures(2, 4, 3, 3, 3 / 4, 3 / 3),
            PositionFigures(3, 3, 3, 1, 1 / 3, 1 / 3),
            PositionFigures(4, 2, 1, 1, 1 / 2, 1 / 1),
        ),
        total_time=7.125,
        prefill_seconds=0.5,
        decode_seconds=6.625,
        draft_seconds=1.0,
        verify_seconds=5.0,
        overhead_seconds=0.625,
        probe_seconds=5 * 0.0625,
        draft_share=1 / 6.625,
        verify_share=5 / 6.625,
        overhead_share=0.625 / 6.625,
        tokens_per_second=11 / 6.625,
        speculation="active: 4 of 5 steps drafted",
        simulated=False,
        finish_reason="stop_string",
        error="",
        near_ties=0,
        logprob_sum=None,
        perplexity=None,
        identities_ok=True,
    )


def test_counts_are_pooled_before_they_are_divided():
    """sglang#13212: the average of the steps' rates (here .54) is another number than accepted / drafted (.62)."""
    average_of_ratios = (2 / 4 + 4 / 4 + 0 / 2 + 2 / 3) / 4
    assert measure(BY_HAND).acceptance_rate == pytest.approx(0.6154, abs=1e-4)
    assert abs(measure(BY_HAND).acceptance_rate - average_of_ratios) > 0.05


def test_tokens_cut_off_again_were_accepted_but_not_emitted():
    """slime#2240, vllm#17908: tokens behind an end token were counted as output, rates went above 1."""
    figures = measure([step("A A* A* B*")])
    assert (figures.accepted, figures.bonus, figures.discarded, figures.tokens_generated) == (3, 1, 3, 1)
    assert figures.acceptance_rate == 1
    assert figures.identities_ok


def test_position_that_was_not_proposed_is_in_no_denominator():
    figures = measure([step("A B"), step("A A A B"), step("R U U")])
    rates = [(row.drafted, row.tested, row.accepted) for row in figures.per_position]
    assert rates == [(3, 3, 2), (2, 1, 1), (2, 1, 1)]
    assert figures.per_token_acceptance == 4 / 5  # accepted / (accepted + steps that were not kept whole)


def test_plain_steps_are_in_no_rate_of_the_draft():
    with_plain = measure([step("A R"), *[step("P")] * 50])
    assert (with_plain.acceptance_rate, with_plain.drafting_steps) == (0.5, 1)
    assert sum(with_plain.accepted_length_histogram) == 1
    assert with_plain.tokens_per_step == 52 / 51


def test_ratio_with_an_empty_denominator_is_none_and_never_0():
    assert (ratio(1, 4), ratio(0, 4), ratio(3, 0), ratio(0, 0)) == (0.25, 0, None, None)
    nothing = measure([])
    empty = {field.name for field in dataclasses.fields(Figures) if getattr(nothing, field.name) is None}
    assert empty == {
        "acceptance_rate", "per_token_acceptance", "tokens_per_step", "draft_share", "verify_share", "overhead_share",
        "tokens_per_second", "finish_reason", "logprob_sum", "perplexity",
    }  # fmt: skip
    assert nothing.identities_ok
    plain = measure([step("P")])
    assert plain.acceptance_rate is plain.per_token_acceptance is None
    assert (plain.per_position, plain.accepted_length_histogram) == ((), ())


@pytest.mark.parametrize(
    ("events", "sentence"),
    [
        ([], "not started"),
        ([step("P")], "inactive: nothing was drafted"),
        ([step("P", note="no match"), step("P", note="no room"), step("P", note="no match")], "inactive: no match"),
        (
            [step("R U"), step("R")],
            "active, without effect: 2 of 2 steps drafted, and not one of 3 drafted tokens was accepted",
        ),
        ([step("P", note="no match"), step("A R")], "active: 1 of 2 steps drafted"),
    ],
)  # fmt: skip
def test_sentence_tells_whether_the_drafter_is_of_use(events, sentence):
    """mlx-engine#280, llama.cpp#25345: the draft was never used and nothing said so."""
    assert measure(events).speculation == sentence


def test_figures_are_there_while_the_run_is_going_on():
    tally = Tally()
    for event in BY_HAND[:2]:
        tally.add(event)
    tally.add(Drafted(1, 4, (7,), ("x",), 0.25))
    figures = tally.figures()
    assert (figures.steps, figures.finish_reason, figures.prefill_seconds, figures.total_time) == (1, None, 0.5, 1.875)


def test_point_is_taken_over_the_last_twenty_steps():
    tally = Tally()
    for index in range(30):
        tally.add(step("A A B" if index < 10 else "R U", 1.375 * (index + 1)))
    point = tally.point()
    assert (point.at, point.emitted) == (1.375 * 30, 30 + 20)
    assert (point.acceptance_rate, point.acceptance_rate_total) == (0, 20 / 60)
    assert point.tokens_per_second == 20 / (20 * 1.375)


def test_point_before_the_first_step_knows_nothing():
    point = Tally().point()
    assert (point.tokens_per_second, point.acceptance_rate, point.acceptance_rate_total) == (None, None, None)
    assert (point.at, point.emitted) == (0, 0)


def test_simulated_and_failed_runs_say_so():
    figures = measure(
        [Started("t", "none", "exact", True, 0, (1,), simulated=True), Finished("error", (), "", 1.0, 1.0, "step 0: x")]
    )
    assert (figures.simulated, figures.finish_reason, figures.error) == (True, "error", "step 0: x")
    assert (figures.prefill_seconds, figures.total_time) == (1, 1)


@pytest.mark.parametrize(("margin", "near"), [(None, 0), (0.0, 2), (NEAR_TIE / 2, 2), (NEAR_TIE * 2, 0)])
def test_near_ties_are_counted_over_emitted_tokens(margin, near):
    assert measure([step("A B", margin=margin), step("A* B*", margin=margin)]).near_ties == near


@pytest.mark.parametrize(
    "broken",
    [
        dataclasses.replace(step("A R"), emitted=(7, 7, 7)),
        dataclasses.replace(step("A R"), emitted=(7,)),
        step("A A"),
        step("P P"),
        step("R R"),
        step("U"),
    ],
    ids=["one too many", "one too few", "no bonus", "two plain", "two rejected", "nothing judged"],
)
def test_broken_bookkeeping_is_noticed(broken):
    assert measure([step("A R")]).identities_ok
    assert not measure([broken]).identities_ok


@pytest.mark.parametrize("drafter", ["model", "ngram", "none"])
def test_seconds_of_a_real_run_add_up(drafter):
    drafters = {"model": ModelDrafter(random_model(2), 6), "ngram": PromptLookup(2), "none": NoDraft()}
    sampling, lengths = Sampling(temperature=1), FixedLength(3)
    figures = measure(decode(random_model(1), drafters[drafter], [0, 1], sampling=sampling, lengths=lengths))
    assert figures.tokens_generated == 128
    assert figures.total_time == pytest.approx(figures.prefill_seconds + figures.decode_seconds)
    assert figures.draft_share + figures.verify_share + figures.overhead_share == pytest.approx(1)
