"""What drafters propose, and the law that they hand over with it."""

import math

import numpy as np
import pytest

from engine.drafters import ModelDrafter, NoDraft, PromptLookup
from engine.errors import ForwardError, SettingError
from engine.models.callable import CallableModel
from engine.sampling import Noise, OneHot, Purpose, Sampling, law
from engine.values import Draft
from tests.engine.toys import random_model, script_model

ASK = {"sampling": Sampling(temperature=1), "noise": Noise(0), "end_tokens": frozenset()}


LOOKUPS = {
    "three tokens match": ([1, 2, 3, 4, 9, 1, 2, 3], 2, (4, 9)),
    "two match, the most recent wins": ([7, 1, 2, 5, 9, 1, 2, 3, 8, 1, 2], 1, (3,)),
    "three tokens at the front beat two that are nearer": ([1, 2, 3, 5, 4, 2, 3, 6, 1, 2, 3], 1, (5,)),
    "one matches": ([5, 1, 9, 6, 1], 3, (9, 6, 1)),
    "no match": ([1, 2], 4, ()),
    "the last token itself is no earlier occurrence": ([1], 4, ()),
    "a context shorter than n uses what exists": ([3, 3], 4, (3,)),
    "an occurrence may overlap the tail": ([3, 3, 3, 3], 4, (3,)),
    "what follows ends with the context": ([1, 2, 1, 2, 1, 2], 8, (1, 2)),
    "what follows may run into the tail": ([1, 2, 3, 1], 8, (2, 3, 1)),
}


@pytest.mark.parametrize(("context", "limit", "tokens"), LOOKUPS.values(), ids=LOOKUPS)
def test_prompt_lookup_proposes_what_followed(context, limit, tokens):
    draft = PromptLookup(3).propose(context, limit, **ASK)
    assert draft.tokens == tokens
    assert draft.laws == tuple(map(OneHot, tokens))
    assert draft.logits is None
    assert bool(draft.note) == (len(tokens) < limit)


def test_first_match_can_be_chosen():
    """Which match wins is documented and can be chosen: vllm-project/vllm#22437."""
    context = [1, 2, 5, 1, 2, 6, 1, 2]
    assert PromptLookup(3, "recent").propose(context, 1, **ASK).tokens == (6,)
    assert PromptLookup(3, "first").propose(context, 1, **ASK).tokens == (5,)


@pytest.mark.parametrize("match", ["recent", "first"])
@pytest.mark.parametrize("max_n", [1, 2, 3, 5])
def test_prompt_lookup_equals_a_search_by_hand(match, max_n):
    """transformers#27775: short contexts and matches at the edges."""

    def by_hand(ids, limit):
        for n in range(max_n, 0, -1):
            places = [place for place in range(len(ids) - n) if ids[place : place + n] == ids[-n:]]
            if places:
                place = places[-1 if match == "recent" else 0] + n
                return tuple(ids[place : place + limit])
        return ()

    rng = np.random.default_rng(max_n)
    for size in list(range(1, 12)) * 20:
        ids = rng.integers(0, 3, size).tolist()
        assert PromptLookup(max_n, match).propose(ids, 4, **ASK).tokens == by_hand(ids, 4)


@pytest.mark.parametrize("settings", [{"max_n": 0}, {"max_n": 17}, {"max_n": 2.5}, {"match": "best"}], ids=str)
def test_prompt_lookup_refuses_a_setting_out_of_range(settings):
    with pytest.raises(SettingError, match="n-gram"):
        PromptLookup(**settings)


def test_no_draft_proposes_nothing_and_says_so():
    draft = NoDraft().propose([1, 2], 4, **ASK)
    assert (draft.tokens, draft.laws) == ((), ())
    assert "no drafter" in draft.note
    NoDraft().prepare([1])
    PromptLookup().prepare([1])
    assert NoDraft().context_length is PromptLookup().context_length is None


@pytest.mark.parametrize("sampling", [Sampling(temperature=1), Sampling(0.6, 3, 0.8), Sampling(temperature=0)], ids=str)
def test_model_drafter_hands_over_the_law_that_it_drew_from(sampling):
    """transformers#32867, vllm#40149: an argmax draft judged with a softmax, a temperature on one side only."""
    model, noise = random_model(3), Noise(5)
    draft = ModelDrafter(model, 6).propose([2, 4], 3, sampling=sampling, noise=noise, end_tokens=frozenset())
    ids = [2, 4]
    for token, drawn_from, logit in zip(draft.tokens, draft.laws, draft.logits, strict=True):
        row = model.logits(ids)[0]
        expected = law(row, sampling)
        assert np.array_equal(drawn_from.dense(6), expected.dense(6))
        assert token == expected.draw(noise.uniform(len(ids), Purpose.DRAFT))
        assert logit == row[token]
        ids.append(token)


def test_model_drafter_stops_behind_an_end_token():
    drafter = ModelDrafter(script_model([1, 2, 7, 3, 4]), 26)
    ask = ASK | {"sampling": Sampling(temperature=0), "end_tokens": frozenset({7})}
    assert drafter.propose([0], 5, **ask).tokens == (1, 2, 7)
    assert drafter.propose([0], 2, **ask).tokens == (1, 2)


def test_padding_of_a_longer_row_is_cut_before_the_softmax():
    """Rows padded to a multiple of 64: transformers#45307; a padded id must not be proposed."""
    drafter = ModelDrafter(CallableModel(lambda ids: [0.0, 1.0, 50.0, 60.0], 4), 2)
    draft = drafter.propose([0], 20, **ASK)
    assert set(draft.tokens) == {0, 1}
    assert draft.laws[0].dense(2) == pytest.approx([1 / (1 + math.e), math.e / (1 + math.e)])


def test_shorter_row_is_padded_with_tokens_of_probability_0():
    draft = ModelDrafter(CallableModel(lambda ids: [0.0, 0.0], 2), 5).propose([0], 1, **ASK)
    assert draft.laws[0].dense(5).tolist() == [0.5, 0.5, 0, 0, 0]


@pytest.mark.parametrize("bad", [math.nan, math.inf, None])
def test_rows_that_are_no_numbers_are_named_before_anything_is_drawn(bad):
    """`NaN <= 0` is false, so a NaN passes comparisons: MTPLX#82."""
    row = [-math.inf, -math.inf] if bad is None else [0.0, bad]
    with pytest.raises(ForwardError, match="bad-one gave a row"):
        ModelDrafter(CallableModel(lambda ids: row, 2, name="bad-one"), 2).propose([0], 1, **ASK)


def test_prepare_feeds_the_prompt_to_the_model():
    asked = []
    model = CallableModel(lambda ids: asked.append(list(ids)) or [0.0, 1.0], 2, name="m", context_length=9)
    drafter = ModelDrafter(model, 2)
    drafter.prepare([0, 1, 1])
    assert asked == [[0, 1, 1]]
    assert (drafter.name, drafter.context_length) == ("model:m", 9)


def test_draft_is_cut_with_its_laws_and_logits():
    draft = Draft((1, 2, 3), (OneHot(1), OneHot(2), OneHot(3)), (0.1, 0.2, 0.3), "why")
    assert draft.cut(2) == Draft((1, 2), (OneHot(1), OneHot(2)), (0.1, 0.2), "why")
    assert Draft((1, 2), (OneHot(1), OneHot(2))).cut(1) == Draft((1,), (OneHot(1),))
