"""Evidence: worked by hand on small laws, and recomputed from the two models' own rows in sampled runs."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

from engine.acceptance import ExactRejection, NaiveThreshold
from engine.decode import decode
from engine.drafters import ModelDrafter, NoDraft, PromptLookup
from engine.errors import SettingError
from engine.event_json import event_from_json, event_to_json, event_to_object
from engine.evidence import MOST_ALTERNATIVES, Term
from engine.lengths import FixedLength
from engine.metrics import measure
from engine.models.base import LoadedModel
from engine.models.markov import load_markov
from engine.output import Output
from engine.probe import Probe
from engine.sampling import Dense, Noise, OneHot, Purpose, Rows, Sampling, Sparse
from engine.spec import RunSpec, build
from engine.values import Draft, Started, Step
from tests.engine.oracle import slow_law
from tests.engine.toys import Pieces, TickingClock, random_model

PLAIN = Sampling(temperature=1)
GREEDY = Sampling(temperature=0)
TARGET = [0.4, 0.3, 0.2, 0.1, 0.0]
DRAFT = [0.1, 0.3, 0.1, 0.25, 0.25]
LEFT = [0.75, 0.0, 0.25, 0.0, 0.0]  # what the target gives beyond the draft, over 0.4
pair = cache(load_markov)


class Fixed:
    """Noise that always says the same."""

    def __init__(self, accept, target):
        self._numbers = {Purpose.ACCEPT: accept, Purpose.TARGET: target}

    def uniform(self, position, purpose):
        return self._numbers[purpose]


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


@pytest.mark.parametrize("settings", [{}, {"rule": "naive"}, {"temperature": 0.0}, {"drafter": "ngram"}])
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


@pytest.mark.parametrize("settings", [{}, {"rule": "naive"}, {"temperature": 0.0}, {"drafter": "ngram"}])
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


def check_step(step, context, target_law, draft_law, *, noise, tolerance, chosen):
    """Recompute the decisions at the `chosen` positions, and the evidence if the deciding one is among them.

    `target_law(position)` and `draft_law(position)` are rows of probabilities. Returns how many were checked.
    """
    drafted = [decision.draft_token for decision in step.decisions if decision.draft_token is not None]

    def same(given, expected):
        assert given == pytest.approx(expected, abs=tolerance, rel=0)

    checked = 0
    for decision in step.decisions:
        position = decision.position
        if position not in chosen or decision.outcome == "unreached":
            continue
        checked += 1
        target = target_law(position)
        same(decision.emitted_prob, target[decision.target_token])
        draft = draft_law(position) if position < len(drafted) else None
        if draft is not None:
            guess = decision.draft_token
            same(decision.draft_prob, draft[guess])
            same(decision.target_prob, target[guess])
            same(decision.accept_prob, min(1.0, target[guess] / draft[guess]))
            assert decision.draw == noise.uniform(len(context) + position, Purpose.ACCEPT)
        choice = step.evidence.choice
        if position != choice.position:
            continue
        left = target if draft is None else np.maximum(target - draft, 0) / np.maximum(target - draft, 0).sum()
        same(choice.drawn_prob, left[decision.target_token])
        same(choice.drawn_below, math.fsum(left[: decision.target_token]))
        assert choice.draw == noise.uniform(len(context) + position, Purpose.TARGET)
        assert choice.drawn_below - tolerance <= choice.draw <= choice.drawn_below + choice.drawn_prob + tolerance
        same(choice.target_entropy, -math.fsum(p * math.log(p) for p in target[target > 0]))
        tokens = [row.token for row in choice.alternatives]
        same([row.target_prob for row in choice.alternatives], target[tokens])
        same(choice.target_others, 1 - math.fsum(target[tokens]))
        order = [row.target_prob for row in choice.alternatives]
        assert order == sorted(order, reverse=True)
        laws = [target] if draft is None else [target, draft, left]
        certain = {decision.target_token} | ({decision.draft_token} if draft is not None else set())
        assert certain <= set(tokens)
        rank = np.maximum.reduce(laws)
        least = min((rank[token] for token in set(tokens) - certain), default=1.0)
        assert np.delete(rank, tokens).max(initial=0.0) <= least + tolerance  # nothing more probable was left out
        if draft is None:
            continue
        same([row.draft_prob for row in choice.alternatives], draft[tokens])
        same([row.residual_prob for row in choice.alternatives], left[tokens])
        same(choice.draft_others, 1 - math.fsum(draft[tokens]))
        same(choice.residual_others, 1 - math.fsum(left[tokens]))
        same(choice.draft_entropy, -math.fsum(p * math.log(p) for p in draft[draft > 0]))
        same(choice.total_variation, 0.5 * math.fsum(np.abs(target - draft)))
    return checked


def with_contexts(events):
    """Every step with the context before it."""
    context = []
    for event in events:
        if isinstance(event, Started):
            context = list(event.prompt)
        elif isinstance(event, Step):
            yield event, list(context)
            context.extend(event.emitted)


@pytest.mark.parametrize("sampling", [Sampling(0.7), Sampling(1.0), Sampling(1.3, 40, 0.95)])
def test_numbers_of_200_random_decisions_equal_a_recomputation_from_both_models(sampling):
    loaded = pair(agreement=0.3)
    noise, rng = Noise(11), np.random.default_rng(5)
    size, target, partner = loaded.model.vocab_size, loaded.model.fork(), loaded.partner.fork()
    events = decode(
        loaded.model, ModelDrafter(loaded.partner, size), loaded.tokenizer.encode("The draft model"),
        sampling=sampling, max_tokens=400, tokenizer=loaded.tokenizer, seed=11, probe=8,
    )  # fmt: skip
    n_checked = 0
    for step, context in with_contexts(events):
        drafted = [decision.draft_token for decision in step.decisions if decision.draft_token is not None]

        def law_of(model, position, context=context, drafted=drafted):
            row = model.logits(context + drafted[:position])[0]
            settings = {"temperature": sampling.temperature, "top_k": sampling.top_k, "top_p": sampling.top_p}
            return np.array(slow_law(row, **settings))

        n_checked += check_step(
            step, context, partial(law_of, target), partial(law_of, partner), noise=noise, tolerance=1e-9,
            chosen={place for place in range(5) if rng.random() < 0.8},
        )  # fmt: skip
        if n_checked >= 200:
            break
    assert n_checked >= 200


@pytest.mark.real_model
@pytest.mark.parametrize("name", ["eagle", "ngram"])
def test_numbers_of_the_real_model_equal_a_recomputation(smollm2: LoadedModel, smollm2_path: Path, name: str) -> None:
    from engine.heads import eagle

    def drafter_on(model):
        return eagle(str(smollm2_path), model) if name == "eagle" else PromptLookup(3)

    sampling, noise, n_wanted = Sampling(1.0), Noise(3), 200 if name == "eagle" else 40
    prompt = smollm2.tokenizer.chat(
        "Repeat this list three times: apples, pears, plums. Then tell what each is good for."
    )
    decoding, judging = smollm2.model.fork(), smollm2.model.fork()
    again = drafter_on(judging)
    events = decode(
        decoding, drafter_on(decoding), prompt, sampling=sampling, max_tokens=200, tokenizer=smollm2.tokenizer,
        seed=3, probe=8,
    )  # fmt: skip
    n_checked = 0
    for step, context in with_contexts(events):
        drafted = [decision.draft_token for decision in step.decisions if decision.draft_token is not None]
        draft = (
            again.propose(context, len(drafted), sampling=sampling, noise=noise, end_tokens=frozenset())
            if drafted else Draft()
        )  # fmt: skip
        assert list(draft.tokens) == drafted
        rows = judging.logits(context + drafted, len(drafted) + 1).astype(np.float64)
        weights = np.exp(rows - rows.max(axis=1, keepdims=True))
        laws = weights / weights.sum(axis=1, keepdims=True)  # temperature 1, all in 64 bits
        n_checked += check_step(
            step, context, lambda position, laws=laws: laws[position],
            lambda position, draft=draft: draft.laws[position].dense(decoding.vocab_size),
            noise=noise, tolerance=1e-4, chosen=set(range(9)),
        )  # fmt: skip
        if n_checked >= n_wanted:
            break
    assert n_checked >= n_wanted
