"""The bookkeeping of 1,000 random runs, counted afresh from the raw events."""

from collections import Counter
from functools import cache

import numpy as np
import pytest

from engine.acceptance import ExactRejection, NaiveThreshold
from engine.decode import decode
from engine.drafters import ModelDrafter, NoDraft, PromptLookup
from engine.lengths import FixedLength
from engine.metrics import measure
from engine.models.markov import load_markov
from engine.sampling import Sampling
from engine.values import Finished, Step
from tests.engine.toys import TickingClock

N_CHUNKS = 10
PROMPTS = ("The draft model", "A token is accepted when the", "Speculative decoding", "the target judges, and the")
STOPS = ("the", ".", "\n\n", "is a", "e", ", and", "ing th", "tokens")

pair = cache(load_markov)


def random_run(number):
    """The events of a run whose every setting is drawn from `number`."""
    rng = np.random.default_rng(number)

    def pick(*choices):
        return choices[rng.integers(len(choices))]

    loaded = pair(agreement=pick(-0.5, 0.0, 0.5, 1.0))
    words, size = loaded.tokenizer, loaded.model.vocab_size
    rule = pick(ExactRejection(), ExactRejection(), NaiveThreshold(float(rng.uniform(0, 0.9))))
    drafter = pick(ModelDrafter(loaded.partner, size), ModelDrafter(loaded.partner, size), PromptLookup(3), NoDraft())
    if isinstance(rule, NaiveThreshold) and isinstance(drafter, PromptLookup):
        drafter = ModelDrafter(loaded.partner, size)
    common = words.encode("the draft. The target, of a token") if rng.random() < 0.4 else []
    return decode(
        loaded.model,
        drafter,
        words.encode(pick(*PROMPTS)),
        rule=rule,
        lengths=FixedLength(int(rng.integers(9))),
        sampling=pick(Sampling(0), Sampling(0.7), Sampling(1.0), Sampling(1.5, 40, 0.95), Sampling(0.8, 0, 0.9)),
        max_tokens=pick(1, 2, 3, 7, 20, 40),
        stop=rng.choice(STOPS, int(rng.integers(1, 3)), replace=False).tolist() if rng.random() < 0.4 else (),
        end_tokens=words.end_tokens | frozenset(rng.choice(common, 2).tolist() if common else ()),
        tokenizer=words,
        seed=number,
        clock=TickingClock(),
    )


def count(steps):
    """Raw counts of a run, from nothing but its decisions."""
    counts, histogram = Counter(), Counter()
    for step in steps:
        counts["emitted"] += len(step.emitted)
        counts["drafting steps"] += any(decision.draft_token is not None for decision in step.decisions)
        for decision in step.decisions:
            counts[decision.outcome] += 1
            counts["discarded"] += decision.discarded
            counts["drafted"] += decision.draft_token is not None
            counts["recovered"] += decision.outcome == "rejected" and decision.target_token is not None
            kept = decision.target_token is not None and not decision.discarded
            counts["kept"] += kept
        if step.n_drafted:
            histogram[sum(decision.outcome == "accepted" for decision in step.decisions)] += 1
    return counts, histogram


@pytest.mark.parametrize("chunk", range(N_CHUNKS))
def test_identities_hold_in_random_runs(chunk):
    seen = Counter()
    for number in range(chunk, 1000, N_CHUNKS):
        events = list(random_run(number))
        steps = [event for event in events if isinstance(event, Step)]
        n, histogram = count(steps)
        finished = events[-1]
        assert isinstance(finished, Finished), number
        assert finished.reason in ("length", "end_token", "stop_string"), (number, finished.error)
        assert n["emitted"] + n["discarded"] == n["accepted"] + n["recovered"] + n["bonus"] + n["plain"], number
        assert n["accepted"] + n["rejected"] + n["unreached"] == n["drafted"], number
        assert n["recovered"] == n["rejected"], number
        assert len(steps) == n["recovered"] + n["bonus"] + n["plain"], number
        assert sum(histogram.values()) == n["drafting steps"], number
        assert n["kept"] == n["emitted"] == len(finished.ids), number

        figures = measure(events)
        assert figures.identities_ok, number
        assert figures.tokens_generated == n["emitted"], number
        names = ("drafted", "accepted", "rejected", "unreached", "recovered", "bonus", "plain", "discarded")
        assert [getattr(figures, name) for name in names] == [n[name] for name in names], number
        assert dict(enumerate(figures.accepted_length_histogram)) == {
            length: histogram[length] for length in range(len(figures.accepted_length_histogram))
        }, number
        assert sum(figures.accepted_length_histogram) == sum(histogram.values()), number
        assert figures.total_time == figures.prefill_seconds + figures.decode_seconds, number
        seen += n + Counter([finished.reason])
    # the runs are worth something only if every case comes up
    assert min(seen[name] for name in ("discarded", "unreached", "bonus", "plain", "end_token", "stop_string")) > 0


def test_same_seed_gives_the_same_events():
    """vllm#6038, TensorRT-LLM#19487: the same seed gave another trace."""
    for number in range(40):
        assert list(random_run(number)) == list(random_run(number))


def test_greedy_text_of_the_embedded_pair_is_the_plain_text():
    loaded = pair(agreement=0.0)
    settings = {"sampling": Sampling(0), "max_tokens": 60, "tokenizer": loaded.tokenizer}
    for prompt in PROMPTS:
        ids = loaded.tokenizer.encode(prompt)
        *_, plain = decode(loaded.model, NoDraft(), ids, **settings)
        for length in (1, 4, 8):
            for drafter in (ModelDrafter(loaded.partner, loaded.model.vocab_size), PromptLookup(3)):
                *_, fast = decode(loaded.model, drafter, ids, lengths=FixedLength(length), **settings)
                assert (fast.ids, fast.text) == (plain.ids, plain.text)


def test_run_of_the_embedded_pair_at_a_made_up_price_is_marked_as_simulated():
    loaded = pair(target_call_seconds=0.02, draft_call_seconds=0.001)
    drafter = ModelDrafter(loaded.partner, loaded.model.vocab_size)
    figures = measure(
        decode(loaded.model, drafter, loaded.tokenizer.encode("The draft"), max_tokens=20, clock=loaded.clock)
    )
    assert figures.simulated
    assert figures.verify_seconds == pytest.approx(0.02 * figures.steps)
    assert figures.draft_seconds == pytest.approx(0.001 * figures.drafted)
