"""Every number of the evidence, computed again from the rows of both models: the embedded pair and the real one."""

from __future__ import annotations

import math
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest

from engine.decode import decode
from engine.drafters import ModelDrafter, PromptLookup
from engine.models.base import LoadedModel
from engine.models.markov import load_markov
from engine.sampling import Noise, Purpose, Sampling
from engine.values import Draft, Started, Step
from tests.engine.oracle import slow_law

pair = cache(load_markov)


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
            assert decision.draw == noise.of_step(len(context)).uniform(len(context) + position, Purpose.ACCEPT)
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
            again.propose(
                context, len(drafted), sampling=sampling, noise=noise.of_step(len(context)), end_tokens=frozenset()
            )
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
