"""Evidence worked by hand on small laws; what the probe leaves alone, and what it costs."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from engine.acceptance import ExactRejection, NaiveThreshold
from engine.build import build
from engine.decode import decode
from engine.drafters import ModelDrafter, NoDraft
from engine.errors import SettingError
from engine.event_json import event_from_json, event_to_json, event_to_object
from engine.evidence import MOST_ALTERNATIVES, Term
from engine.lengths import FixedLength
from engine.metrics import measure
from engine.output import Output
from engine.probe import Probe
from engine.rules import RULES
from engine.sampling import Dense, OneHot, Purpose, Rows, Sampling, Sparse
from engine.spec import RunSpec
from engine.values import Draft, Step
from tests.engine.toys import Pieces, TickingClock, random_model

PLAIN = Sampling(temperature=1)
GREEDY = Sampling(temperature=0)
TARGET = [0.4, 0.3, 0.2, 0.1, 0.0]
DRAFT = [0.1, 0.3, 0.1, 0.25, 0.25]
LEFT = [0.75, 0.0, 0.25, 0.0, 0.0]  # what the target gives beyond the draft, over 0.4


class Fixed:
    """Noise that always says the same."""

    def __init__(self, accept, target):
        self._numbers = {Purpose.ACCEPT: accept, Purpose.TARGET: target}

    def uniform(self, position, purpose):
        return self._numbers[purpose]

    def draw(self, law, position, purpose):
        return law.draw(self.uniform(position, purpose))


def judged(target_rows, draft, *, n=8, rule=None, sampling=PLAIN, accept=0.9, taken=0.8):
    """The verdict and the evidence of one step whose target says `target_rows` (raw logits)."""
    rule, noise = rule or ExactRejection(), Fixed(accept, taken)
    rows = Rows(np.array(target_rows, float), sampling)
    verdict = rule.judge(draft, rows, noise=noise, start=3)
    output = Output(Pieces(), end_tokens=frozenset(), stop=(), max_tokens=9, context_room=9)
    return verdict, Probe(n, rule, output).evidence(draft, rows, verdict, noise=noise, start=3)


def logs(*rows):
    with np.errstate(divide="ignore"):
        return np.log(np.array(rows))


def test_rejected_guess_by_hand():
    verdict, evidence = judged(logs(TARGET, TARGET), Draft((3,), (Dense(np.array(DRAFT)),)))
    choice = evidence.choice
    assert (verdict.n_accepted, verdict.token, evidence.positions) == (0, 2, ())
    assert evidence.formula == "min(1, {target_prob} / {draft_prob}) = {accept_prob}"
    assert (choice.position, choice.drawn_from, choice.draw) == (0, "residual", 0.8)
    assert (choice.drawn_prob, choice.drawn_below) == pytest.approx((0.25, 0.75))
    assert choice.total_variation == pytest.approx(0.4)
    assert choice.target_entropy == pytest.approx(-sum(p * math.log(p) for p in TARGET[:4]))
    assert choice.draft_entropy == pytest.approx(-sum(p * math.log(p) for p in DRAFT))
    assert [row.token for row in choice.alternatives] == [0, 1, 2, 3, 4]
    assert [row.text for row in choice.alternatives] == list("abcde")
    for row in choice.alternatives:
        numbers = (row.target_prob, row.draft_prob, row.residual_prob)
        assert numbers == pytest.approx((TARGET[row.token], DRAFT[row.token], LEFT[row.token]))
        assert row.target_logit is None
    assert (choice.target_others, choice.draft_others, choice.residual_others) == pytest.approx((0, 0, 0), abs=1e-12)


@pytest.mark.parametrize(
    ("n", "tokens", "others"),
    [(1, [2, 3], (0.7, 0.65, 0.75)), (2, [2, 3], (0.7, 0.65, 0.75)), (3, [0, 2, 3], (0.3, 0.55, 0)),
     (4, [0, 1, 2, 3], (0, 0.25, 0))],
)  # fmt: skip
def test_alternatives_are_the_most_probable_under_any_law_and_always_hold_guess_and_taken(n, tokens, others):
    _, evidence = judged(logs(TARGET, TARGET), Draft((3,), (Dense(np.array(DRAFT)),)), n=n)
    choice = evidence.choice
    assert [row.token for row in choice.alternatives] == tokens
    given = (choice.target_others, choice.draft_others, choice.residual_others)
    assert given == pytest.approx(others, abs=1e-12)


@pytest.mark.parametrize(
    ("law", "left"),
    [(OneHot(3), [4 / 9, 3 / 9, 2 / 9, 0, 0]),
     (Sparse(np.array([1, 3]), np.array([0.5, 0.5])), [4 / 6, 0, 2 / 6, 0, 0])],
)  # fmt: skip
def test_laws_of_few_tokens_are_aligned_with_the_targets(law, left):
    _, evidence = judged(logs(TARGET, TARGET), Draft((3,), (law,)))
    choice, row = evidence.choice, law.dense(5)
    assert choice.total_variation == pytest.approx(0.5 * np.abs(np.array(TARGET) - row).sum())
    assert choice.draft_entropy == pytest.approx(-sum(p * math.log(p) for p in row if p))
    assert {found.token: found.draft_prob for found in choice.alternatives} == {
        found.token: row[found.token] for found in choice.alternatives
    }
    assert [found.residual_prob for found in choice.alternatives] == pytest.approx(
        [left[found.token] for found in choice.alternatives]
    )


def test_bonus_and_plain_tokens_have_the_targets_law_only():
    for draft in (Draft((0,), (Dense(np.array(DRAFT)),)), Draft()):
        rows = logs(TARGET, TARGET)[: len(draft.tokens) + 1]
        verdict, evidence = judged(rows, draft, taken=0.75)
        choice = evidence.choice
        assert (choice.position, verdict.token) == (len(draft.tokens), 2)
        assert (choice.drawn_from, choice.draw) == ("target", 0.75)
        assert (choice.drawn_prob, choice.drawn_below) == pytest.approx((0.2, 0.7))
        assert choice.draft_entropy is choice.total_variation is choice.draft_others is choice.residual_others is None
        assert all(row.draft_prob is row.residual_prob is None for row in choice.alternatives)
        assert [row.token for row in choice.alternatives] == [0, 1, 2, 3]  # nothing of probability 0


def test_greedy_laws_are_one_hot_and_raw_logits_tell_the_alternatives_apart():
    target = [[1.0, 5.0, 4.5, -np.inf, 0.0], [0.0] * 5]
    verdict, evidence = judged(target, Draft((2,), (OneHot(2),)), n=3, sampling=GREEDY)
    choice = evidence.choice
    assert verdict.token == 1
    assert (choice.target_entropy, choice.draft_entropy, choice.total_variation) == (0, 0, 1)
    assert (choice.drawn_prob, choice.drawn_below) == (1, 0)
    rows = [(r.token, r.target_logit, r.target_prob, r.draft_prob, r.residual_prob) for r in choice.alternatives]
    assert rows == [(1, 5.0, 1, 0, 1), (2, 4.5, 0, 1, 0), (0, 1.0, 0, 0, 0)]
    _, evidence = judged(target[::-1], Draft((0,), (OneHot(0),)), sampling=GREEDY)  # kept: argmax of a tie
    assert [row.token for row in evidence.choice.alternatives] == [1, 2, 0, 4]  # what is banned is no alternative
    assert evidence.choice.total_variation is None
    _, evidence = judged(target, Draft((1,), (OneHot(1),)), sampling=GREEDY, rule=Refusing())
    assert evidence.choice.total_variation == 0


class Refusing(NaiveThreshold):
    """Refuses whatever comes, and says nothing of how."""

    name = "refusing"
    formula = replacement = ""

    def judge(self, draft, rows, *, noise, start):
        verdict = ExactRejection().judge(draft, rows, noise=noise, start=start)
        return replace(verdict, tested=(replace(verdict.tested[0], accepted=False),))


def test_rule_that_does_not_say_what_it_draws_from_has_no_law_of_its_draw():
    rows = logs(TARGET, TARGET)
    _, evidence = judged(rows, Draft((0,), (Dense(np.array(DRAFT)),)), rule=Refusing())
    choice = evidence.choice
    assert (evidence.formula, choice.drawn_from, choice.drawn_prob, choice.drawn_below, choice.draw) == (
        "", "", None, None, None
    )  # fmt: skip
    assert choice.total_variation == pytest.approx(0.4)


@pytest.mark.parametrize("accept", [0.05, 0.3])
def test_naive_rule_shows_its_test_and_what_the_exact_rule_would_have_done(accept):
    """exp(-1 - -1.6) = 1.82 is above 1 / (1 - 0.1): kept; the exact rule keeps a sure guess with probability 0.2."""
    target_logits = logs(TARGET, TARGET)
    draft = Draft((2,), (OneHot(2),), (-1.0,))
    verdict, evidence = judged(target_logits, draft, rule=NaiveThreshold(0.1), accept=accept, taken=0.6)
    [position] = evidence.positions
    assert verdict.n_accepted == 1
    assert [term.name for term in position.terms] == [
        "draft_logit", "target_logit", "quotient", "acceptance_probability", "threshold"
    ]  # fmt: skip
    assert [term.value for term in position.terms] == pytest.approx(
        [-1.0, math.log(0.2), math.exp(-1) / 0.2, 0.1, 1 / 0.9]
    )
    exact = position.exact
    assert (exact.accept_prob, exact.draw, exact.accepted) == (pytest.approx(0.2), accept, accept < 0.2)
    # refused: 0.6 falls into the second stretch of (0.4, 0.3, 0, 0.1) / 0.8
    assert (exact.token, exact.text) == ((2, "c") if accept < 0.2 else (1, "b"))


def test_naive_rule_draws_its_replacement_from_the_target_itself():
    draft = Draft((2,), (OneHot(2),), (-9.0,))
    verdict, evidence = judged(logs(TARGET, TARGET), draft, rule=NaiveThreshold(0.1), taken=0.75)
    choice = evidence.choice
    assert (verdict.token, choice.drawn_from) == (2, "target")
    assert (choice.drawn_prob, choice.drawn_below) == pytest.approx((0.2, 0.7))
    assert {row.token: row.residual_prob for row in choice.alternatives} == pytest.approx(
        {0: 0.5, 1: 0.375, 2: 0, 3: 0.125}
    )


def test_logits_without_bound_are_no_numbers():
    row = [0.0, -np.inf]
    _, evidence = judged([row, row], Draft((1,), (OneHot(1),), (800.0,)), rule=NaiveThreshold(0.1))
    terms = {term.name: term.value for term in evidence.positions[0].terms}
    assert (terms["draft_logit"], terms["target_logit"], terms["quotient"]) == (800.0, None, None)
    assert Term("target_logit", None) in evidence.positions[0].terms


def test_token_without_a_text_does_not_end_the_run():
    settings = {"sampling": PLAIN, "max_tokens": 6, "tokenizer": Pieces("ab"), "probe": 6}
    only_two = random_model(3, 6, scale=0.0)
    banned = type(only_two)(lambda ids: np.where(np.arange(6) < 2, 9.0, 0.0), 6, name="two")
    *events, finished = decode(banned, NoDraft(), [0], **settings)
    assert finished.error == ""
    assert {row.text for event in events[2::2] for row in event.evidence.choice.alternatives} == {"a", "b", ""}


# ---- in a run ----


def runs(probe, **settings):
    return list(build(RunSpec(**{"prompt": "The draft model", "max_tokens": 60, "probe": probe} | settings)).events())


@pytest.mark.parametrize("settings", [*({"rule": rule} for rule in RULES), {"temperature": 0.0}, {"drafter": "ngram"}])
def test_probe_changes_no_event_but_for_the_evidence(settings):
    price = {"target_call_seconds": 0.5, "draft_call_seconds": 0.25}  # a made-up clock, so that times are equal too
    probed, bare = runs(5, **settings, **price), runs(0, **settings, **price)
    steps = [event for event in probed if isinstance(event, Step)]
    assert all(step.evidence for step in steps)
    assert max(len(step.evidence.choice.alternatives) for step in steps) == 5
    assert [replace(event, evidence=None) if isinstance(event, Step) else event for event in probed] == bare


def test_without_a_probe_nothing_is_made_and_events_are_as_they_were(monkeypatch):
    monkeypatch.setattr(Probe, "__init__", lambda *_: pytest.fail("a probe was made"))
    for event in runs(0):
        assert not {"evidence", "probe_seconds"} & event_to_object(event).keys()


@pytest.mark.parametrize("settings", [*({"rule": rule} for rule in RULES), {"temperature": 0.0}, {"drafter": "ngram"}])
def test_evidence_comes_back_from_json_bit_for_bit(settings):
    for event in runs(MOST_ALTERNATIVES, **settings):
        assert event_from_json(event_to_json(event)) == event


def test_evidence_comes_back_from_the_store(store):
    spec = RunSpec(prompt="The draft model", max_tokens=20, probe=3)
    events = list(build(spec).events())
    with store.begin(spec) as writer:
        for event in events:
            writer.add(event)
    assert list(store.events(writer.run_id)) == events
    run = store.get(writer.run_id)
    assert run.spec.probe == 3
    assert run.record["probe_seconds"] == sum(event.probe_seconds for event in events if isinstance(event, Step)) > 0


def test_evidence_is_small():
    """Eight rows of a step are some kilobytes, whatever the vocabulary."""
    sizes = [len(json.dumps(event_to_object(event))) for event in runs(8) if isinstance(event, Step)]
    assert max(sizes) < 4000


def test_time_of_the_probe_is_in_no_other_time():
    """Every look at the clock takes 0.25 s; a probe costs one lap of overhead and its own."""
    settings = {"sampling": PLAIN, "max_tokens": 20, "lengths": FixedLength(3)}
    events, bare = (
        list(decode(random_model(1), ModelDrafter(random_model(2), 6), [0], probe=n, clock=TickingClock(), **settings))
        for n in (4, 0)
    )
    figures = measure(events)
    steps = [event for event in events if isinstance(event, Step)]
    assert [step.probe_seconds for step in steps] == [0.25] * len(steps)
    assert figures.probe_seconds == 0.25 * len(steps)
    assert figures.total_time == figures.prefill_seconds + figures.decode_seconds
    assert figures.decode_seconds == measure(bare).decode_seconds + 0.25 * len(steps)  # the look before the probe
    at = figures.prefill_seconds
    for step in steps:
        at += step.draft_seconds + step.verify_seconds + step.overhead_seconds
        assert step.at_seconds == at


@pytest.mark.parametrize("probe", [-1, MOST_ALTERNATIVES + 1, 2.5])
def test_number_of_alternatives_out_of_range_is_refused(probe):
    with pytest.raises(SettingError, match=r"the probe is .* 0 \(off\) to 32"):
        decode(random_model(1), NoDraft(), [0], probe=probe)


# ---- every number against the models' own rows ----
