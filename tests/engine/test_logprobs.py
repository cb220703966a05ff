"""Log-probabilities: the target's own, raw, for every emitted token, whatever the rule made of it."""

import dataclasses
import json
import math

import numpy as np
import pytest

from engine.acceptance import ExactRejection, NaiveThreshold
from engine.build import build
from engine.cli.explain import explained
from engine.decode import decode
from engine.drafters import ModelDrafter, NoDraft, PromptLookup
from engine.errors import RunFileError
from engine.explain import explain
from engine.lengths import FixedLength
from engine.metrics import measure, perplexity
from engine.models.callable import CallableModel
from engine.report import Report
from engine.sampling import Sampling, log_probability
from engine.spec import RunSpec
from engine.step_checks import check_step
from engine.values import Decision, Step
from tests.engine.toys import letters, random_model, script_model


def raw_logprob(row, token):
    """Straight from the definition."""
    return math.log(math.exp(row[token]) / math.fsum(math.exp(score) for score in row))


def decided_of(events):
    return [decision for event in events if isinstance(event, Step) for decision in event.decisions]


@pytest.mark.parametrize(
    ("drafter", "rule"),
    [
        ("none", ExactRejection()),
        ("model", ExactRejection()),
        ("ngram", ExactRejection()),
        ("model", NaiveThreshold(0.5)),
    ],
    ids=["none", "model", "ngram", "naive"],
)
@pytest.mark.parametrize(
    "sampling", [Sampling(0), Sampling(0.7, 3, 0.9), Sampling(1, repetition_penalty=1.5, presence_penalty=0.5)], ids=str
)
def test_every_token_has_the_log_of_the_targets_raw_law(drafter, rule, sampling):
    """llama.cpp#27972: 0.0 for every token; vllm#17876: 0.0 with a lookup; never the draft's nor the residual's."""
    target = random_model(2)
    made = {"none": NoDraft(), "model": ModelDrafter(random_model(5), 6), "ngram": PromptLookup(2)}[drafter]
    prompt = [0, 1, 0, 1, 0]
    settings = {"rule": rule, "sampling": sampling, "lengths": FixedLength(2), "max_tokens": 150, "logprobs": True}
    outcomes, ids = set(), list(prompt)
    for decision in decided_of(decode(target, made, prompt, **settings)):
        if decision.target_token is None:
            assert decision.logprob is None
            continue
        if not decision.discarded:
            expected = raw_logprob(target.logits(ids)[0], decision.target_token)
            assert decision.logprob == pytest.approx(expected, abs=1e-12)
            outcomes.add(decision.outcome)
            ids.append(decision.target_token)
    if drafter == "model" and rule.lossless and not sampling.greedy:
        assert {"accepted", "rejected", "bonus"} <= outcomes


def test_none_is_computed_unless_it_is_asked_for(monkeypatch):
    monkeypatch.setattr("engine.sampling.rows.log_probability", lambda *_: pytest.fail("nobody asked"))
    figures = measure(decode(random_model(2), NoDraft(), [0], max_tokens=5))
    assert (figures.logprob_sum, figures.perplexity) == (None, None)


def test_it_changes_no_token():
    settings = {"sampling": Sampling(1), "max_tokens": 40}
    texts = [
        list(decode(random_model(2), ModelDrafter(random_model(5), 6), [0], logprobs=asked, **settings))[-1].ids
        for asked in (False, True)
    ]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("probe", [0, 3])
def test_its_time_is_overhead(monkeypatch, probe):
    """A clock that moves only while a log-probability is computed: 4 seconds for each, and none is lost."""
    seconds = 0.0

    def slow(row, token, arithmetic):
        nonlocal seconds
        seconds += 4
        return log_probability(row, token, arithmetic)

    monkeypatch.setattr("engine.sampling.rows.log_probability", slow)
    settings = {"lengths": FixedLength(2), "max_tokens": 12, "probe": probe, "clock": lambda: seconds}
    drafter = ModelDrafter(random_model(2), 6)
    events = list(decode(random_model(2), drafter, [0], logprobs=True, **settings))
    steps = [event for event in events if isinstance(event, Step)]
    assert any(len(step.emitted) > 1 for step in steps)
    for step in steps:
        assert step.overhead_seconds == 4 * len(step.emitted)
        assert (step.draft_seconds, step.verify_seconds, step.probe_seconds) == (0, 0, 0)
    assert steps[-1].at_seconds == seconds == 48


def test_float32_rows_are_good_to_six_digits():
    rng = np.random.default_rng(3)
    for row in rng.normal(0, 5, (20, 30_000)):
        single = row.astype(np.float32)
        for token in (int(row.argmax()), 17):
            expected = raw_logprob(single.astype(np.float64), token)
            assert log_probability(single, token) == pytest.approx(expected, abs=2e-6)


def test_a_certain_token_has_0_and_an_impossible_one_none():
    assert log_probability(np.array([5.0, -np.inf]), 0) == 0.0
    assert log_probability(np.array([5.0, -np.inf]), 1) is None
    assert log_probability(np.array([1e308, -1e308]), 1) is None
    assert log_probability(np.array([1000.0, 0.0]), 1) == -1000.0


def test_sum_and_perplexity_of_the_emitted_text():
    target = random_model(2)
    settings = {"sampling": Sampling(1), "lengths": FixedLength(3), "max_tokens": 20, "logprobs": True}
    events = list(decode(target, ModelDrafter(random_model(5), 6), [0], **settings))
    ids, logprobs = [0], []
    for token in events[-1].ids:
        logprobs.append(raw_logprob(target.logits(ids)[0], token))
        ids.append(token)
    figures = measure(events)
    assert figures.logprob_sum == pytest.approx(math.fsum(logprobs))
    assert figures.perplexity == pytest.approx(math.exp(-math.fsum(logprobs) / 20))
    assert Report(events).record()["logprobs"] == pytest.approx(logprobs)
    json.dumps(Report(events).record(), allow_nan=False)


def test_discarded_tokens_are_in_no_sum():
    said = letters("abcdefgh")
    target = script_model(said)
    settings = {"sampling": Sampling(0), "lengths": FixedLength(4), "logprobs": True}
    events = list(
        decode(target, ModelDrafter(target, 26), [0], end_tokens=frozenset(letters("c")), max_tokens=9, **settings)
    )
    emitted = [decision.logprob for decision in decided_of(events) if not decision.discarded]
    assert any(decision.discarded for decision in decided_of(events))
    assert len(emitted) == len(events[-1].ids) == 3
    assert measure(events).logprob_sum == pytest.approx(math.fsum(emitted))


def test_a_text_with_an_impossible_token_has_no_perplexity():
    """Only a lossy rule emits one; the sum would be minus infinity, which no file can hold."""
    target = CallableModel(lambda ids: np.array([0.0, -np.inf]), 2)
    draft = CallableModel(lambda ids: np.array([0.0, 1.0]), 2)
    settings = {"rule": NaiveThreshold(), "sampling": Sampling(0), "lengths": FixedLength(1), "max_tokens": 4}
    events = list(decode(target, ModelDrafter(draft, 2), [0], logprobs=True, **settings))
    figures = measure(events)
    assert 1 in events[-1].ids
    assert (figures.logprob_sum, figures.perplexity) == (None, None)
    assert None in Report(events).record()["logprobs"]


def test_perplexity_beyond_the_largest_float_is_not_known():
    assert perplexity(-709.0, 1) == pytest.approx(math.exp(709))
    assert perplexity(-710.0, 1) is None
    assert perplexity(0.0, 0) is None


def test_the_step_says_it_in_words():
    decision = Decision(0, "rejected", 5, 7, draft_prob=0.41, target_prob=0.03, accept_prob=0.07, draw=0.5,
                        logprob=math.log(0.25), draft_text=" cat", target_text=" dog")  # fmt: skip
    step = Step(0, 9, (decision,), (7,), 0.0, 0.1, 0.0, 0.2)
    told = explain(step)
    assert told["positions"][0]["logprob_words"] == (
        "The target's raw law, before temperature, penalties and truncation, gives “ dog” the log-probability -1.39, "
        "a probability of 0.25."
    )
    assert "log- probability -1.39" in " ".join(explained(told).split())
    quiet = explain(dataclasses.replace(step, decisions=(dataclasses.replace(decision, logprob=None),)))
    assert quiet["positions"][0]["logprob_words"] == ""
    assert "log-probability" not in explained(quiet)


@pytest.mark.parametrize(
    ("decision", "why"),
    [
        (Decision(0, "plain", target_token=3, logprob=0.5), "logprob 0.5; expected 0 or less"),
        (Decision(0, "unreached", draft_token=3, logprob=-1.0), "no token that it would belong to"),
    ],
)
def test_a_log_probability_that_cannot_be_is_refused(decision, why):
    with pytest.raises(RunFileError, match=why):
        check_step(Step(0, 1, (decision,), (3,), 0.0, 0.5, 0.0, 0.75))
    check_step(Step(0, 1, (Decision(0, "plain", target_token=3, logprob=-1.0),), (3,), 0.0, 0.5, 0.0, 0.75))


def test_a_spec_asks_for_them():
    events = list(build(RunSpec(prompt="The draft", max_tokens=6, logprobs=True)).events())
    assert all(decision.logprob is not None for decision in decided_of(events) if decision.target_token is not None)
    assert measure(events).perplexity >= 1
