"""The sentences of a comparison, held against rows made by hand."""

import pytest

from engine.compare.judgement import judged, judged_text
from engine.sampling import Sampling

ROW = {
    "speed_up": {"value": 1.62, "low": 1.55, "high": 1.7},
    "drafted": 100,
    "draft_cost": 0.03,
    "draft_cost_per_step": 0.12,
    "acceptance_rate": 0.58,
    "tokens_per_step": 1.4,
    "verify_cost": 1.9,
    "rows_per_call": 4.98,
    "extra_overhead_cost": 0.01,
    "speed_up_with_prefill": None,
    "simulated": False,
}
GREEDY = Sampling(temperature=0.0)
COLD = {"lossless": True, "rule": "exact", "sampling": GREEDY, "plain_sampling": GREEDY}


def row(low, value, high, **changes):
    return {**ROW, "speed_up": {"value": value, "low": low, "high": high}, **changes}


def place(prompt="7", position=11, margin=0.25):
    return {"prompt": prompt, "position": position, "margin": margin, "near_tie": margin is not None and margin < 1e-3}


def told(found, n_compared=8, **changes):
    return judged_text({"prompts_compared": n_compared, "divergences": found}, **(COLD | changes))


def test_it_helps_if_the_whole_interval_is_above_one():
    assert judged(ROW) == (
        "helps", "helps: 1.62x (1.55-1.70); the draft costs 3 % of a target call and 58 % of its tokens are kept",
    )  # fmt: skip


def test_of_trees_the_cost_of_a_whole_one_is_told():
    assert judged(ROW | {"drafted_at": [20, 15, 5], "draft_cost_per_step": 0.4})[1] == (
        "helps: 1.62x (1.55-1.70); drafting a tree costs 0.40 target calls and 58 % of its tokens are kept"
    )
    assert judged(ROW | {"drafted_at": [50, 30, 20]}) == judged(ROW)


def test_it_hurts_if_the_whole_interval_is_below_one_and_verifying_is_dear():
    assert judged(row(0.78, 0.81, 0.9)) == (
        "hurts",
        "hurts: 0.81x (0.78-0.90); verifying 5 tokens costs 1.9 target calls and only 1.4 tokens come out of each",
    )


def test_an_interval_that_a_reader_sees_touch_one_is_no_difference():
    assert judged(row(1.003, 1.14, 1.35)) == (
        "no difference",
        "makes no difference that can be told from noise: 1.14x (1.00-1.35)",
    )
    assert judged(row(0.8, 0.9, 0.997))[0] == "no difference"
    assert judged(row(1.006, 1.14, 1.35))[0] == "helps"


def test_it_hurts_because_drafting_is_dear():
    _, sentence = judged(row(0.5, 0.6, 0.7, draft_cost_per_step=1.24, verify_cost=1.0, rows_per_call=4.3))
    assert sentence.endswith("drafting 3.3 tokens costs 1.2 target calls a step and only 1.4 tokens come out of each")


def test_it_hurts_because_of_what_is_around_the_models():
    _, sentence = judged(row(0.8, 0.9, 0.95, draft_cost_per_step=0.0, verify_cost=1.02, extra_overhead_cost=0.31))
    assert sentence.endswith(
        "the work around the models costs 0.31 target calls a step more than in plain decoding and "
        "only 1.4 tokens come out of each"
    )


def test_one_token_is_one_and_a_small_cost_is_not_nothing():
    changes = {"verify_cost": 1.0, "extra_overhead_cost": 0.0, "rows_per_call": 2.01}
    _, sentence = judged(row(0.9, 0.95, 0.99, draft_cost_per_step=0.004, **changes))
    assert "; drafting 1 token costs less than 0.01 target calls a step and" in sentence
    _, sentence = judged(row(0.9, 0.95, 0.99, draft_cost_per_step=0.04, **changes))
    assert "; drafting 1 token costs 0.04 target calls a step and" in sentence


@pytest.mark.parametrize(
    ("interval", "with_prefill", "verdict", "words"),
    [
        ((1.1, 1.2, 1.3), (0.8, 0.9, 0.95), "helps", "it is 0.90x (0.80-0.95), slower than plain decoding"),
        ((1.1, 1.2, 1.3), (0.9, 1.0, 1.1), "helps", "it is 1.00x (0.90-1.10), without a clear difference"),
        ((0.98, 1.0, 1.02), (0.8, 0.9, 0.95), "no difference", "it is 0.90x (0.80-0.95), slower than plain decoding"),
    ],
)
def test_prefill_is_told_where_it_turns_the_answer(interval, with_prefill, verdict, words):
    known = dict(zip(("low", "value", "high"), with_prefill, strict=True))
    answer, sentence = judged(row(*interval, speed_up_with_prefill=known))
    assert answer == verdict
    assert f"; with the reading of the prompt {words}" in sentence


@pytest.mark.parametrize("with_prefill", [(1.05, 1.1, 1.2), (None, 0.9, None)])
def test_prefill_that_turns_nothing_is_not_told(with_prefill):
    known = dict(zip(("low", "value", "high"), with_prefill, strict=True))
    assert "prompt" not in judged(row(1.1, 1.2, 1.3, speed_up_with_prefill=known))[1]


def test_an_interval_with_one_in_it_is_noise():
    assert judged(row(0.98, 1.01, 1.04)) == (
        "no difference", "makes no difference that can be told from noise: 1.01x (0.98-1.04)",
    )  # fmt: skip
    assert judged(row(1.0, 1.0, 1.0))[0] == "no difference"


def test_a_simulated_clock_has_no_noise():
    assert judged(row(0.98, 1.01, 1.04, simulated=True)) == (
        "no difference", "makes no clear difference: 1.01x (0.98-1.04); it depends on the prompt",
    )  # fmt: skip
    assert judged(row(1.0, 1.0, 1.0, simulated=True)) == (
        "no difference", "makes no difference: 1.00x (1.00-1.00), the same in every run",
    )  # fmt: skip
    assert judged(row(None, 1.3, None, simulated=True))[1] == (
        "not sure: 1.30x, from one run; more prompts give an interval"
    )


def test_one_run_is_not_enough():
    verdict, sentence = judged(row(None, 1.3, None))
    assert verdict == "not known"
    assert "1.30x, from one run" in sentence
    assert judged({**ROW, "speed_up": None})[0] == "not known"


@pytest.mark.parametrize(("interval", "why"), [((0.8, 0.9, 0.95), "looking for a draft"), ((1.1, 1.2, 1.3), "nothing")])
def test_a_drafter_that_never_drafts_is_named_as_the_reason(interval, why):
    assert why in judged(row(*interval, drafted=0, draft_cost=None, acceptance_rate=None))[1]


def test_small_shares_are_not_rounded_to_nothing():
    assert "less than 1 % of a target call" in judged({**ROW, "draft_cost": 0.002})[1]


def test_equal_ids_are_the_same_text():
    assert told([]) == ("same", "the same text: all ids are equal (8 prompts)")
    assert told([], 1)[1].endswith("(1 prompt)")


def test_a_lead_that_rounding_may_turn_is_a_near_tie():
    kind, sentence = told([place(margin=0.0004)])
    assert kind == "near-tie"
    assert "in 1 of 8 prompts, first at token 12 of prompt 7, where the best logit" in sentence
    assert "led the second by 0.0004: a near-tie" in sentence


def test_a_larger_lead_is_a_difference_even_behind_a_near_tie():
    kind, sentence = told([place(margin=0.0004), place("9", 3, 0.25)])
    assert kind == "difference"
    assert "in 2 of 8 prompts, first at token 4 of prompt 9" in sentence
    assert sentence.endswith("led the second by 0.25: a difference")


def test_a_text_that_only_ends_earlier_is_said_to():
    kind, sentence = told([place(margin=None)])
    assert kind == "difference"
    assert "ends earlier" in sentence


def test_a_lossy_rule_is_the_explanation():
    assert told([place()], lossless=False, rule="naive")[1].endswith("the rule naive is lossy, so it may differ")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"sampling": Sampling(0.7), "plain_sampling": Sampling(0.7)}, "at temperature 0.7 .* its rule is lossless"),
        ({"sampling": Sampling(0.7)}, "another one: temperature differs"),
        (
            {"sampling": Sampling(0, presence_penalty=1)},
            "^not compared: its law is .*: presence_penalty differs$",
        ),
        ({"sampling": Sampling(0.7, min_p=0.1), "plain_sampling": Sampling(0.7)}, "another one: min_p differs"),
        ({"sampling": Sampling(0.7, 40), "plain_sampling": Sampling(0.7)}, "another one: top_k differs"),
        (
            {"sampling": Sampling(0.7, 40), "plain_sampling": Sampling(0.9, 0, 0.5)},
            "at temperature 0.9 .* another one: temperature and top_k and top_p differ$",
        ),
        (
            {"sampling": Sampling(1.0), "plain_sampling": Sampling(1.0), "lossless": False, "rule": "naive"},
            "the rule naive is lossy",
        ),
    ],
)
def test_texts_of_chance_or_of_another_law_are_not_compared(changes, why):
    import re

    kind, sentence = told([place()], **changes)
    assert kind == "not compared"
    assert re.search(why, sentence)


def test_without_a_pair_of_runs_nothing_is_compared():
    assert told([], 0)[0] == "not compared"
