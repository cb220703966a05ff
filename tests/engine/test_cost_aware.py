"""The cost-aware policy beside the best fixed draft length, by clocks that only count calls."""

import math
import random
import re

import numpy as np
import pytest

from engine.build import build
from engine.decode import decode
from engine.drafters import ModelDrafter
from engine.lengths import CostAware, FixedLength, Prospect, StepOutcome
from engine.models.callable import CallableModel
from engine.models.simulated import SimulatedClock
from engine.sampling import Sampling
from engine.spec import RunSpec
from engine.theory import best_draft_length, speed_up
from engine.values import Step

PLAIN = Sampling(temperature=1)


class Priced:
    """A model whose calls take their time on a clock, by the rows that are asked for."""

    def __init__(self, model, clock, seconds):
        self._model, self._clock, self._seconds = model, clock, seconds
        self.name, self.vocab_size, self.context_length = model.name, model.vocab_size, model.context_length

    def logits(self, context, last=1):
        self._clock.advance(self._seconds(last))
        return self._model.logits(context, last)


def row(*probs):
    with np.errstate(divide="ignore"):
        scores = np.log(probs)
    return CallableModel(lambda ids: scores, len(probs))


def pair(alpha):
    """A target and a draft whose laws share the mass `alpha` at every position: that many guesses are kept."""
    return row(alpha, 1 - alpha, 0), row(alpha, 0, 1 - alpha)


def run(policy, alpha, c, *, n_tokens, v=lambda n_rows: 1.0, seed=0):
    """Tokens per plain call, and the steps, of a pair of that acceptance whose draft costs c plain calls."""
    clock = SimulatedClock()
    target, draft = pair(alpha)
    *events, finished = decode(
        Priced(target, clock, v), ModelDrafter(Priced(draft, clock, lambda _: c), 3), [0], lengths=policy,
        sampling=PLAIN, max_tokens=n_tokens, seed=seed, clock=clock,
    )  # fmt: skip
    steps = [event for event in events if isinstance(event, Step)]
    return len(finished.ids) / (finished.total_seconds - finished.prefill_seconds), steps


def outcomes(policy, alpha, c, *, n_tokens, v=lambda n_rows: 1.0, seed=0):
    """What `run` gives, without models: each token is kept with probability `alpha`. The speed, and the lengths."""
    rng, lengths, emitted, seconds = random.Random(seed), [], 0, 0.0
    while emitted < n_tokens:
        n = policy.next_length()
        n_kept = 0
        while n_kept < n and rng.random() < alpha:
            n_kept += 1
        policy.observe(StepOutcome(n, n_kept, draft_seconds=c * n, verify_seconds=v(n + 1)))
        lengths.append(n)
        emitted, seconds = emitted + n_kept + 1, seconds + c * n + v(n + 1)
    return emitted / seconds, lengths


@pytest.mark.parametrize("c", [0.01, 0.1, 0.3])
@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.8, 0.95])
def test_it_is_within_5_percent_of_the_best_fixed_length(alpha, c):
    best = speed_up(alpha, best_draft_length(alpha, c), c)  # among 0 to 32, by theorem 3.8, which is exact here
    speeds = [outcomes(CostAware(32), alpha, c, n_tokens=10_000, seed=seed)[0] for seed in range(3)]
    assert np.mean(speeds) > 0.95 * best


@pytest.mark.parametrize(("alpha", "c"), [(0.2, 0.3), (0.8, 0.1)])
def test_the_loop_goes_as_the_outcomes_by_themselves(alpha, c):
    best = speed_up(alpha, best_draft_length(alpha, c), c)
    speed, steps = run(CostAware(32), alpha, c, n_tokens=1500)
    assert speed > 0.95 * best
    assert sum(step.n_accepted for step in steps) > 0


def test_the_pair_keeps_what_the_theorem_takes_for_granted():
    speed, steps = run(FixedLength(3), 0.8, 0.1, n_tokens=1500)
    assert speed == pytest.approx(speed_up(0.8, 3, 0.1), rel=0.05)
    assert {step.n_drafted for step in steps[:-3]} == {3}


@pytest.mark.parametrize(
    ("alpha", "c", "v"),
    [
        (0.0, 0.1, 0.0),
        (0.0, 2.0, 0.5),
        (0.2, 0.3, 0.0),
        (0.2, 0.6, 0.0),
        (0.3, 0.1, 0.5),  # a verified token costs half a plain call
        (0.5, 1.0, 0.0),
        (0.9, 1.0, 0.0),
    ],
)
@pytest.mark.parametrize("n_tokens", [300, 3000])
def test_where_speculation_cannot_pay_it_is_hardly_slower_than_plain(alpha, c, v, n_tokens):
    def speed(seed):
        speed, lengths = outcomes(
            CostAware(8), alpha, c, v=lambda n_rows: 1 + v * (n_rows - 1), n_tokens=n_tokens, seed=seed
        )
        assert any(lengths[len(lengths) // 2 :])  # it still looks now and then
        return speed

    assert np.mean([speed(seed) for seed in range(10)]) > 0.97


@pytest.mark.parametrize("times", [4, 10])
@pytest.mark.parametrize(("alpha", "c", "v"), [(0.2, 0.3, 0.1), (0.6, 0.1, 0.2), (0.9, 0.05, 0.0)])
def test_calls_that_are_late_now_and_then_do_not_mislead_it(alpha, c, v, times):
    """Times scatter by an eighth, and one call in fifty takes four or ten times as long."""

    def speed(policy, seed):
        rng, emitted, seconds = np.random.default_rng(seed), 0, 0.0
        while emitted < 2000:
            n = policy.next_length()
            n_kept = next((place for place in range(n) if rng.random() >= alpha), n)
            drafting, verifying = (
                due * float(rng.lognormal(0, 0.125)) * (times if rng.random() < 0.02 else 1)
                for due in (c * n, 1 + v * n)
            )
            policy.observe(StepOutcome(n, n_kept, drafting, verifying))
            emitted, seconds = emitted + n_kept + 1, seconds + drafting + verifying
        return emitted / seconds

    best = max(np.mean([speed(FixedLength(length), seed) for seed in range(4)]) for length in (0, 1, 2, 4, 8))
    assert np.mean([speed(CostAware(8), seed) for seed in range(8)]) > 0.95 * best


def speed_beside_a_late_call(alpha, c, step, part, *, times, seed):
    """Tokens per plain call, what the late call took too long left out."""
    policy, rng, emitted, seconds = CostAware(32), random.Random(seed), 0, 0.0
    for index in range(10**6):
        n = policy.next_length()
        n_kept = 0
        while n_kept < n and rng.random() < alpha:
            n_kept += 1
        due = {"drafting": c * n, "verifying": 1.0}
        took = due | ({part: times * due[part]} if index == step else {})
        policy.observe(StepOutcome(n, n_kept, took["drafting"], took["verifying"]))
        emitted, seconds = emitted + n_kept + 1, seconds + sum(due.values())
        if emitted >= 1000:
            break
    return emitted / seconds


@pytest.mark.parametrize("part", ["drafting", "verifying"])
@pytest.mark.parametrize("step", [0, 1, 2, 3, 4, 22])
@pytest.mark.parametrize(("alpha", "c"), [(0.3, 0.5), (0.5, 0.1), (0.9, 0.05), (0.95, 0.01), (0.0, 2.0)])
def test_one_late_call_does_not_mislead_it_whenever_it_comes(alpha, c, step, part):
    late, usual = (
        np.mean([speed_beside_a_late_call(alpha, c, step, part, times=times, seed=seed) for seed in range(4)])
        for times in (25, 1)
    )
    assert late > 0.96 * usual


def test_one_late_call_does_not_silence_a_drafter_that_knows_its_chances():
    policy, lengths = CostAware(4), []
    for step in range(150):
        n, limit = 0, policy.next_length()
        while n < limit and policy.before(Prospect(n, survival=0.6 ** (n + 1))):
            n += 1
        lengths.append(n)
        kept = min(n, (0, 1, 2, 0, 1)[step % 5])
        policy.observe(StepOutcome(n, kept, 0.06 * n, (1 + 0.1 * n) * (25 if step == 40 else 1)))
    assert lengths[40]
    assert np.mean([n > 0 for n in lengths[41:]]) > 0.9


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(("alpha", "c"), [(0.3, 0.3), (0.5, 0.5), (0.7, 0.6), (0.9, 0.3)])
def test_the_note_of_a_plain_step_gives_numbers_by_which_drafting_does_not_pay(alpha, c, known):
    """By clocks that scatter: also behind a streak of bad luck with long drafts."""
    policy, rng, n_notes = CostAware(16), random.Random(7), 0
    for _ in range(1500):
        policy.reason = ""
        n, limit = 0, policy.next_length()
        if limit == 0 and "does not pay now" in policy.reason:
            n_notes += 1
            numbers = [float(number) for number in re.findall(r"[0-9.]+(?:e-?[0-9]+)?", policy.reason)]
            if known:
                tokens, seconds, _, plain = numbers
                assert tokens * plain <= seconds * 1.01  # in three digits
            else:
                cost, plain, chance = numbers
                assert chance * plain <= cost + 0.01 * plain
        while n < limit and (not known or policy.before(Prospect(n, survival=alpha ** (n + 1)))):
            n += 1
        n_kept = 0
        while n_kept < n and rng.random() < alpha:
            n_kept += 1
        late = 10 if rng.random() < 0.02 else 1
        drafting = c * max(n, int(known and limit > 0)) * rng.lognormvariate(0, 0.2)
        policy.observe(StepOutcome(n, n_kept, drafting, late * rng.lognormvariate(0, 0.2)))
    assert n_notes or alpha > c + 0.2


def test_it_finds_a_length_that_pays_behind_one_that_does_not():
    """Verifying a second row is dear and all further rows are cheap: one token does not pay, several do."""
    policy = CostAware(8)
    speed, _ = outcomes(policy, 0.8, 0.05, v=lambda n_rows: 1 if n_rows == 1 else 1.8 + 0.02 * n_rows, n_tokens=6000)
    assert speed > 1.4  # 6 tokens: 3.95 / (0.3 + 1.94) = 1.76; 1 token: 1.8 / 1.89 = 0.95


def test_it_finds_out_when_speculation_starts_to_pay_and_when_it_stops():
    policy, rng = CostAware(8), np.random.default_rng(4)

    def steps_at(alpha, n_steps):
        lengths = []
        for _ in range(n_steps):
            lengths.append(policy.next_length())
            n_kept = next((place for place in range(lengths[-1]) if rng.random() >= alpha), lengths[-1])
            policy.observe(StepOutcome(lengths[-1], n_kept, draft_seconds=0.1 * lengths[-1], verify_seconds=1.0))
        return lengths

    assert np.mean(steps_at(0.02, 300)[100:]) < 0.3
    assert np.mean(steps_at(0.9, 400)[200:]) > 4
    assert np.mean(steps_at(0.02, 400)[200:]) < 0.3


@pytest.mark.parametrize(("agreement", "c"), [(-1.0, 0.3), (0.0, 0.1), (0.5, 0.1), (0.5, 0.3), (1.0, 0.01)])
def test_it_is_within_5_percent_of_the_best_fixed_length_on_the_embedded_pair(agreement, c):
    def speed(policy, length):
        spec = RunSpec(
            prompt="The draft", agreement=agreement, target_call_seconds=1.0, draft_call_seconds=c, temperature=1.0,
            draft_length=length, length_policy=policy, max_tokens=800,
        )  # fmt: skip
        built = build(spec)
        *_, finished = decode(
            built.loaded.model, built.drafter, built.prompt, lengths=built.lengths, sampling=built.sampling,
            max_tokens=spec.max_tokens, clock=built.loaded.clock,
        )  # fmt: skip
        return len(finished.ids) / (finished.total_seconds - finished.prefill_seconds)

    fixed = [speed("fixed", length) for length in (0, 1, 2, 4, 8)]
    found = speed("cost-aware", 8)
    assert found > 0.95 * max(fixed)
    assert found > 0.97 * fixed[0]


def test_a_run_by_a_simulated_clock_is_repeated_to_the_last_step():
    (one, steps), (other, again) = (run(CostAware(8), 0.6, 0.1, n_tokens=300, seed=3) for _ in range(2))
    assert (one, steps) == (other, again)


def test_a_drafter_that_knows_its_chances_drafts_as_far_as_each_pays():
    """A guess costs 0.1 and verifying it 0.3 plain calls; every other guess is sure, and the others are hopeless."""
    policy = CostAware(6)
    drafted = []
    for place in range(400):
        sure = place % 2 == 0
        n, limit, survival = 0, policy.next_length(), 1.0
        while n < limit:
            survival *= 0.99 if sure else 0.05
            if not policy.before(Prospect(n, survival=survival)):
                break
            n += 1
            if n < limit and not policy.behind(Prospect(n - 1, survival=survival), 0):
                break
        drafted.append(n)
        policy.observe(StepOutcome(n, n if sure else 0, draft_seconds=0.1 * max(n, 1), verify_seconds=1 + 0.3 * n))
    assert set(drafted[200::2]) == {6}
    assert np.mean(drafted[201::2]) < 0.2


def test_it_says_why_it_drafts_nothing():
    policy = CostAware(4)
    assert policy.next_length() == 0
    assert "first steps" in policy.reason
    while (n := policy.next_length()) == 0:
        policy.observe(StepOutcome(n, 0, draft_seconds=0.5 * n, verify_seconds=1.0))
    policy.observe(StepOutcome(n, 0, draft_seconds=0.5, verify_seconds=1.0))
    assert (n, policy.next_length()) == (1, 0)
    assert "does not pay now: a guess costs 0.5 s beside the 1 s of a plain step" in policy.reason


@pytest.mark.parametrize("seconds", [0.0, 1e-9])
def test_calls_that_take_no_time_do_no_harm(seconds):
    policy = CostAware(4)
    for _ in range(50):
        n = policy.next_length()
        assert 0 <= n <= 4
        policy.observe(StepOutcome(n, 0, draft_seconds=seconds * n, verify_seconds=seconds))
    assert math.isfinite(policy._account)


def test_draft_length_0_is_plain_decoding():
    _, steps = run(CostAware(0), 0.9, 0.01, n_tokens=50)
    assert not any(step.n_drafted for step in steps)
    assert {step.note for step in steps} == {"the draft length is 0"}
