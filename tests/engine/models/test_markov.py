"""The embedded pair: exact laws, a dial that means what it says, text that reads well."""

import itertools
import math
import time
from importlib.resources import files

import numpy as np
import pytest

from engine.errors import SettingError
from engine.models.base import LoadedModel
from engine.models.chain import Chain
from engine.models.markov import load_markov
from engine.models.simulated import SimulatedClock
from engine.models.words import WordTokenizer

TEXT = files("engine.models").joinpath("markov.txt").read_text(encoding="utf-8").strip()
DIAL = [-1.0, -0.7, -0.3, 0.0, 0.2, 0.6, 0.9, 1.0]


@pytest.fixture(scope="module")
def pair() -> LoadedModel:
    return load_markov()


@pytest.fixture(scope="module")
def contexts(pair) -> list[list[int]]:
    """Places in the text, places that the text never shows, and the special ids."""
    ids = pair.tokenizer.encode(TEXT)
    random = np.random.default_rng(5)
    unseen = random.integers(0, pair.model.vocab_size, size=(60, 2)).tolist()
    return [*(ids[:end] for end in range(1, len(ids), 41)), *unseen, [0], [1], [1, 1], [2, 0]]


def probs(model, context) -> np.ndarray:
    return np.exp(model.logits(context)[0])


def acceptance(pair: LoadedModel, context: list[int]) -> float:
    """Chance that a drafted token is kept at temperature 1: sum of min(target, draft)."""
    return float(np.minimum(probs(pair.model, context), probs(pair.partner, context)).sum())


# The text


def test_text_is_long_enough_and_plain():
    assert len(TEXT.split()) >= 3000
    assert TEXT.isascii()
    assert "\n\n\n" not in TEXT


@pytest.mark.parametrize("fact", ["2211.17192", "2302.01318", "1811.03115"])
def test_text_names_its_sources_by_number(fact):
    assert fact in TEXT


def test_text_survives_the_round_trip(pair):
    ids = pair.tokenizer.encode(TEXT)
    assert b"".join(pair.tokenizer.token_bytes(token) for token in ids).decode() == TEXT


# The tokenizer


def test_vocabulary_is_the_same_whenever_it_is_built(pair):
    again = WordTokenizer(TEXT)
    size = pair.tokenizer.vocab_size
    assert [again.token_bytes(token) for token in range(size)] == [
        pair.tokenizer.token_bytes(token) for token in range(size)
    ]
    assert len({again.token_bytes(token) for token in range(size)}) == size


@pytest.mark.parametrize(
    ("text", "back"),
    [
        ("The draft model", "The draft model"),
        ("the  target\tmodel ,\nand the draft", "the target model, and the draft"),
        ("DRAFT", " draft"),
        ("A step.\n\nThe test", "A step.\n\nThe test"),
        ("A step.\n \n\n", "A step.\n\n"),
        ("The banana model", "The [?] model"),
        ("\u4f60\u597d!", " [?] [?]"),
        ("", ""),
    ],
)
def test_prompt_reads_as_it_was_meant(pair, text, back):
    words = pair.tokenizer
    spelled = b"".join(words.token_bytes(token) for token in words.encode(text)).decode()
    assert spelled.strip(" ") == back.strip(" ")


def test_end_token_is_control_and_never_comes_from_text(pair):
    words = pair.tokenizer
    (end,) = words.end_tokens
    assert words.is_control(end)
    assert end not in words.encode(TEXT + " <end of text>")
    assert sum(words.is_control(token) for token in range(words.vocab_size)) == 1


def test_chat_is_refused_in_words(pair):
    assert not pair.tokenizer.has_chat_template
    with pytest.raises(SettingError, match="no chat template"):
        pair.tokenizer.chat("hello")


# The laws


def test_rows_are_finite_and_sum_to_one(pair, contexts):
    for agreement in DIAL:
        loaded = load_markov(agreement=agreement)
        for model, context in itertools.product((loaded.model, loaded.partner), contexts):
            row = model.logits(context)
            assert row.shape == (1, pair.model.vocab_size)
            assert np.isfinite(row).all()
            assert np.exp(row).sum() == pytest.approx(1, abs=1e-12)


def test_several_rows_are_the_rows_of_the_prefixes(pair):
    ids = pair.tokenizer.encode("The draft model is called the target model.")
    for model in (pair.model, pair.partner, pair.model.fork()):
        rows = model.logits(ids, last=len(ids))
        for i in range(len(ids)):
            np.testing.assert_array_equal(rows[i], model.logits(ids[: i + 1])[0])


def test_trigram_is_counted_as_written_by_hand():
    # text 1 2 1 3 1 2 0: after (2, 1) comes 3; after 1 come 2, 3, 2; no smoothing but the stated weights
    chain = Chain([1, 2, 1, 3, 1, 2, 0], classes=[0, 1, 2, 3])
    unigram = 0.999 * np.array([1, 3, 2, 1]) / 7 + 0.001 / 4
    bigram = 0.05 * unigram + 0.95 * np.array([0, 0, 2 / 3, 1 / 3])
    np.testing.assert_allclose(chain.bigram([1]), bigram, rtol=1e-14)
    np.testing.assert_allclose(chain.trigram([0, 2, 1]), 0.25 * bigram + 0.75 * np.array([0, 0, 0, 1]), rtol=1e-14)
    np.testing.assert_allclose(chain.trigram([1, 1]), bigram, rtol=1e-14)  # a pair that the text never shows
    np.testing.assert_allclose(chain.trigram([1]), bigram, rtol=1e-14)  # nothing before it


def test_capital_and_space_do_not_change_what_follows(pair):
    words = pair.tokenizer
    forms = {(token,) for token in range(words.vocab_size) if words.token_bytes(token).strip().lower() == b"the"}
    assert len(forms) == 3
    rows = [pair.partner.logits(form)[0] for form in sorted(forms)]
    for row in rows[1:]:
        np.testing.assert_array_equal(row, rows[0])


def test_unknown_word_is_practically_never_proposed(pair, contexts):
    unknown = pair.tokenizer.encode("banana")[0]
    for context in contexts:
        assert probs(pair.model, context)[unknown] < 1e-5
        assert probs(pair.partner, context)[unknown] < 1e-5


def test_end_of_text_is_possible_but_rare(pair):
    (end,) = pair.tokenizer.end_tokens
    ids = pair.tokenizer.encode(TEXT)
    chances = [probs(pair.model, ids[:n])[end] for n in range(2, len(ids), 13)]
    assert 0 < float(np.mean(chances)) < 1e-3
    assert pair.model.logits(ids)[0].argmax() == end


# The dial


def test_models_are_the_same_at_agreement_one(contexts):
    loaded = load_markov(agreement=1)
    for context in contexts:
        np.testing.assert_array_equal(loaded.partner.logits(context), loaded.model.logits(context))


def test_acceptance_never_falls_as_the_dial_rises_at_any_context(contexts):
    pairs = [load_markov(agreement=agreement) for agreement in DIAL]
    for context in contexts:
        chances = [acceptance(loaded, context) for loaded in pairs]
        assert all(low <= high + 1e-12 for low, high in itertools.pairwise(chances))


def test_acceptance_is_a_straight_line_above_zero(pair, contexts):
    loaded = load_markov(agreement=0.3)
    for context in contexts:
        beta = acceptance(pair, context)
        assert acceptance(loaded, context) == pytest.approx(beta + 0.3 * (1 - beta), abs=1e-12)


def test_dial_spans_nearly_nothing_to_everything(pair):
    ids = pair.tokenizer.encode(TEXT)
    places = [ids[:end] for end in range(2, len(ids), 41)]

    def mean(agreement: float) -> float:
        loaded = load_markov(agreement=agreement)
        return float(np.mean([acceptance(loaded, context) for context in places]))

    assert mean(-1) < 0.03
    assert 0.4 < mean(0) < 0.7
    assert mean(1) == pytest.approx(1)


@pytest.mark.parametrize("agreement", [-1.01, 2, math.nan, math.inf])
def test_dial_outside_its_range_is_refused(agreement):
    with pytest.raises(SettingError, match="agreement"):
        load_markov(agreement=agreement)


# The simulated clock


def test_without_prices_there_is_no_clock(pair):
    assert pair.clock is None


def test_clock_counts_every_call_and_only_calls():
    loaded = load_markov(target_call_seconds=0.03, draft_call_seconds=0.002)
    assert loaded.clock() == 0
    for _ in range(5):
        loaded.partner.logits([3])
    loaded.model.logits([3, 4, 5, 6], last=4)  # four rows, one call
    loaded.model.fork().logits([3])  # a fork moves the same clock
    assert loaded.clock() == 0.07
    assert load_markov(target_call_seconds=0.03).clock() == 0  # every load has a clock of its own


def test_one_price_is_enough_for_a_clock():
    loaded = load_markov(draft_call_seconds=0.5)
    loaded.model.logits([3])
    assert loaded.clock() == 0


@pytest.mark.parametrize("seconds", [-0.1, math.nan, math.inf])
def test_price_that_is_none_is_refused(seconds):
    with pytest.raises(SettingError, match="target_call_seconds"):
        load_markov(target_call_seconds=seconds)
    with pytest.raises(SettingError, match="draft_call_seconds"):
        load_markov(draft_call_seconds=seconds)
    with pytest.raises(SettingError, match="seconds"):
        SimulatedClock().advance(seconds)


def test_row_costs_far_less_than_a_millisecond(pair):
    ids = pair.tokenizer.encode(TEXT)
    began = time.perf_counter()
    load_markov().model.logits(ids, last=1000)
    assert (time.perf_counter() - began) / 1000 < 1e-3
