"""The length policies: what each decides, and that none changes the text at temperature 0."""

import math
from pathlib import Path

import numpy as np
import pytest

from engine.build import build, check
from engine.decode import decode
from engine.drafters import ModelDrafter, PromptLookup
from engine.errors import SettingError
from engine.lengths import (
    MAX_DRAFT_LENGTH,
    AdaptiveThreshold,
    ConfidenceThreshold,
    EntropyBound,
    Heuristic,
    LengthPolicy,
    Prospect,
    StepOutcome,
    spread,
)
from engine.policies import POLICIES, POLICY_PARAMETERS
from engine.sampling import Dense, OneHot, Sampling
from engine.spec import RunSpec
from engine.values import Finished, Step
from tests.engine.toys import random_model

PLAIN = Sampling(temperature=1)


def text(**settings):
    spec = RunSpec(prompt="The draft model", temperature=0, max_tokens=40, **settings)
    *_, finished = build(spec).events()
    assert isinstance(finished, Finished)
    assert not finished.error
    return finished.ids


@pytest.mark.parametrize("drafter", ["none", "ngram", "model"])
@pytest.mark.parametrize("policy", POLICIES)
def test_at_temperature_0_every_policy_gives_the_plain_text(policy, drafter):
    plain = text(drafter="none")
    for length in range(9):
        assert text(drafter=drafter, length_policy=policy, draft_length=length) == plain


def drafted(policy, *, drafter=None, n_tokens=40, sampling=PLAIN, **settings):
    """The steps of a run on a random pair."""
    drafter = drafter or ModelDrafter(random_model(51), 6)
    events = decode(
        random_model(1), drafter, [0], lengths=policy, sampling=sampling, max_tokens=n_tokens, **settings
    )  # fmt: skip
    return [event for event in events if isinstance(event, Step)]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("length", [1, 5])
def test_the_draft_length_is_the_most_of_every_policy(policy, length):
    steps = drafted(POLICIES[policy](RunSpec(draft_length=length)))
    assert max(step.n_drafted for step in steps) <= length


@pytest.mark.parametrize("policy", [name for name in POLICIES if name not in ("heuristic", "cost-aware")])
def test_a_lookup_has_no_law_and_goes_to_the_draft_length(policy):
    lookup = PromptLookup(1)
    fixed = drafted(POLICIES["fixed"](RunSpec()), drafter=lookup)
    steps = drafted(POLICIES[policy](RunSpec()), drafter=lookup)
    assert [step.n_drafted for step in steps] == [step.n_drafted for step in fixed]


def test_nothing_of_vocabulary_size_is_worked_out_for_a_policy_that_does_not_ask():
    prospect = Prospect(0, survival=0.5, law=lambda: pytest.fail("the law was worked out"))
    for name in ("fixed", "confident", "heuristic", "cost-aware"):
        policy = POLICIES[name](RunSpec())
        policy.before(prospect)
        policy.behind(prospect, 0)
        policy.observe(StepOutcome(1, 1))


def test_a_law_is_worked_out_once():
    asked = []
    prospect = Prospect(0, law=lambda: asked.append(1) or Dense(np.array([0.5, 0.5])))
    assert (prospect.prob(0), prospect.entropy) == (0.5, pytest.approx(math.log(2)))
    assert asked == [1]


def test_at_temperature_0_a_draft_is_as_sure_as_the_softmax_of_its_logits():
    logits = np.log([0.3, 0.5, 0.2])
    assert spread(logits, OneHot(1)).dense(3) == pytest.approx([0.3, 0.5, 0.2])
    drawn_from = Dense(np.array([0.0, 0.9, 0.1]))
    assert spread(logits, drawn_from) is drawn_from


@pytest.mark.parametrize("sampling", [PLAIN, Sampling(temperature=0)], ids=str)
def test_the_low_confidence_token_is_kept_and_is_the_last_one(sampling):
    """Recomputed from the draft model itself."""
    model, threshold = random_model(51), 0.5
    policy = ConfidenceThreshold(6, threshold)
    n_stopped = 0
    context = [0]
    for step in drafted(policy, drafter=ModelDrafter(model, 6), sampling=sampling, n_tokens=60):
        guesses = [decision.draft_token for decision in step.decisions if decision.draft_token is not None]
        probs = []
        for place, guess in enumerate(guesses):
            row = np.exp(model.logits([*context, *guesses[:place]])[0])
            probs.append(row[guess] / row.sum())
        assert all(prob >= threshold for prob in probs[:-1])
        if guesses and probs[-1] < threshold and len(guesses) < 6 and step.note:
            n_stopped += step.note.startswith("the draft gave its last token")
        context += step.emitted
    assert n_stopped > 5


def test_the_entropy_bound_stops_before_the_token():
    model, least = random_model(51), 0.5
    context = [0]
    n_stopped = 0
    for step in drafted(EntropyBound(6, least), drafter=ModelDrafter(model, 6), n_tokens=60):
        guesses = [decision.draft_token for decision in step.decisions if decision.draft_token is not None]
        bounds = []
        for place in range(len(guesses) + 1):
            row = np.exp(model.logits([*context, *guesses[:place]])[0])
            probs = row / row.sum()
            bounds.append(1 - math.sqrt(0.2 * -float(probs @ np.log(probs))))
        assert all(bound >= least for bound in bounds[: len(guesses)])
        if "entropy" in step.note:
            n_stopped += 1
            assert bounds[-1] < least
        context += step.emitted
    assert n_stopped > 5


def test_the_heuristic_stays_between_1_and_the_draft_length():
    policy = Heuristic(5)
    lengths = []
    for n_accepted in (0, 0, 0, 0, 0, 1, 3, 5, 0):
        n = policy.next_length()
        policy.observe(StepOutcome(n, min(n, n_accepted)))
        lengths.append(policy.next_length())
    assert lengths == [4, 3, 2, 1, 1, 3, 5, 5, 4]
    policy.observe(StepOutcome(0, 0))
    assert policy.next_length() == 4


def test_the_adaptive_threshold_follows_its_paper():
    policy = AdaptiveThreshold(4, 0.6)
    rate, threshold = 0.9, 0.6
    rng = np.random.default_rng(2)
    for _ in range(200):
        n_drafted = int(rng.integers(0, 5))
        n_accepted = int(rng.integers(0, n_drafted + 1)) if rng.random() < 0.5 else n_drafted
        policy.observe(StepOutcome(n_drafted, n_accepted))
        if n_drafted:
            rate = 0.5 * rate + 0.5 * n_accepted / n_drafted
            if rate < 0.9:
                threshold = 0.9 * threshold + 0.1 * (threshold + 0.01)
            elif n_drafted < 4:
                threshold = 0.9 * threshold + 0.1 * (threshold - 0.01)
        assert policy.threshold == pytest.approx(threshold)


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_says_what_it_does_where_it_comes_from_and_what_it_needs(name):
    policy = POLICIES[name](RunSpec())
    assert policy.name == name
    assert policy.guarantee.endswith(".")
    assert policy.source
    assert policy.needs
    assert ">>>" in type(policy).__doc__


@pytest.mark.parametrize("name", sorted({name for names in POLICY_PARAMETERS.values() for name in names}))
@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan])
def test_a_parameter_out_of_range_is_refused_in_words(name, value):
    words = name.replace("start", "first").replace("_", " ")
    with pytest.raises(SettingError, match=f"the {words} is {value}; it must be from 0 to 1"):
        check(RunSpec(prompt="x", **{name: value}))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("length", [-1, MAX_DRAFT_LENGTH + 1])
def test_a_draft_length_out_of_range_is_refused_in_words(policy, length):
    with pytest.raises(SettingError, match=f"the draft length is {length}; it must be a whole number from 0 to 32"):
        check(RunSpec(prompt="x", length_policy=policy, draft_length=length))


def test_a_policy_of_one_s_own_needs_a_length_only():
    class Alternating(LengthPolicy):
        def __init__(self):
            self.n = 0

        def next_length(self):
            self.n = 3 - self.n
            return self.n

    assert [step.n_drafted for step in drafted(Alternating(), n_tokens=30)][:4] == [3, 0, 3, 0]


def test_the_docs_name_every_policy_and_its_parameters():
    docs = (Path(__file__).parents[2] / "docs" / "length-policies.md").read_text(encoding="utf-8")
    for name in POLICIES:
        (row,) = (line for line in docs.splitlines() if line.startswith(f"| `{name}`"))
        assert all(
            f"`{parameter}` {getattr(RunSpec(), parameter):g}" in row for parameter in POLICY_PARAMETERS.get(name, ())
        )
