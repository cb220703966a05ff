"""Suffix decoding: the counts of its trees, the proposals, and what is remembered of earlier runs."""

from collections import Counter
from itertools import pairwise, product
from threading import Thread

import numpy as np
import pytest

from engine.drafters import PromptLookup, SuffixDecoding, suffix_tree
from engine.drafters.earlier_outputs import MOST_TREES, EarlierOutputs, forget_outputs, outputs_of
from engine.drafters.suffix_settings import Speculation
from engine.drafters.suffix_tree import Guess, SuffixTree
from engine.errors import SettingError
from engine.lengths import FixedLength
from engine.lengths.confident import FURTHER, Confident
from engine.sampling import Noise, OneHot, Sampling

ASK = {"sampling": Sampling(temperature=1), "noise": Noise(0), "end_tokens": frozenset()}
FREE = Speculation(factor=1.0, offset=32, min_prob=0.0)


def by_hand(texts, depth):
    """How often every run of at most `depth` tokens occurs in the texts."""
    counts = Counter()
    for text in texts:
        for start in range(len(text)):
            counts.update(tuple(text[start:end]) for end in range(start + 1, min(start + depth, len(text)) + 1))
    return counts


def random_texts(seed, n_texts, *, vocab_size=3, longest=14):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, vocab_size, rng.integers(1, longest)).tolist() for _ in range(n_texts)]


def is_in(run, texts):
    """Whether a run of tokens occurs in one of the texts."""
    return any(tuple(text[start : start + len(run)]) == run for text in texts for start in range(len(text)))


def assert_counts(tree, texts, depth):
    expected = by_hand(texts, depth)
    for path, count in expected.items():
        assert tree.count(path) == count, path
        for token in range(4):
            if len(path) < depth:
                assert tree.count((*path, token)) == expected[*path, token], (path, token)


@pytest.mark.parametrize("depth", [2, 3, 5, 32])
@pytest.mark.parametrize("seed", range(8))
def test_every_count_is_the_number_of_occurrences(seed, depth, monkeypatch):
    monkeypatch.setattr(suffix_tree, "DEPTH", depth)
    tree, texts = SuffixTree(), random_texts(seed, 5)
    for place, text in enumerate(texts):
        tree.begin()
        for token in text:
            tree.extend([token])
        assert_counts(tree, texts[: place + 1], depth)
    assert tree.n_texts == 5


@pytest.mark.parametrize("choice", ["frequent", "recent"])
@pytest.mark.parametrize("max_nodes", [30, 60, 100])
@pytest.mark.parametrize("depth", [3, 6])
def test_counts_stay_right_when_the_oldest_texts_are_forgotten(choice, max_nodes, depth, monkeypatch):
    monkeypatch.setattr(suffix_tree, "DEPTH", depth)
    tree, texts = SuffixTree(choice, max_nodes=max_nodes), random_texts(max_nodes, 40, vocab_size=4)
    kept = 0
    for place, text in enumerate(texts):
        tree.begin()
        tree.extend(text)
        assert tree.n_nodes <= max_nodes
        held = texts[place + 1 - tree.n_texts : place + 1]
        assert_counts(tree, held, depth)
        kept = max(kept, tree.n_texts)
        for context in product(range(4), repeat=2):
            guess = tree.guess_behind(context, 4, FREE)
            found = [context[-guess.n_matched :] + guess.tokens] if guess.tokens else []
            assert all(is_in(run[:depth], held) for run in found)
            assert bool(found) == any(is_in((context[-1], token), held) for token in range(4))
    assert 0 < tree.n_texts < 40
    assert kept > 1


@pytest.mark.parametrize("choice", ["frequent", "recent"])
@pytest.mark.parametrize("max_nodes", [20, 50, 100])
def test_proposals_equal_their_definition_when_the_oldest_texts_are_forgotten(choice, max_nodes):
    tree, texts = SuffixTree(choice, max_nodes=max_nodes), random_texts(max_nodes, 100, vocab_size=4)
    compared = 0
    for place, text in enumerate(texts):
        tree.begin()
        tree.extend(text)
        held = texts[place + 1 - tree.n_texts : place + 1]
        for context in random_texts(place, 4, vocab_size=4, longest=6):
            found, expected = tree.guess_behind(context, 4, FREE), slow_guess(held, context, 4, FREE, choice)
            assert (found.tokens, found.n_matched) == (expected.tokens, expected.n_matched)
            assert found.survivals == pytest.approx(expected.survivals)
            compared += bool(found.tokens)
    assert compared > 50


def test_a_token_whose_followers_are_all_forgotten_suggests_nothing():
    tree = SuffixTree("recent", max_nodes=5)
    for text in ([1, 2], [1], [7, 8, 9, 10]):
        tree.begin()
        tree.extend(text)
    assert (tree.count([1]), tree.count([1, 2])) == (1, 0)
    assert tree.guess_behind([5, 1], 4, FREE) == Guess()


def test_nothing_is_left_of_a_text_that_is_too_large_by_itself():
    tree = SuffixTree(max_nodes=10)
    tree.begin()
    tree.extend(range(50))
    assert (tree.n_nodes, tree.n_texts) == (0, 0)
    tree.begin()
    tree.extend([1, 2, 1])
    assert tree.count([1]) == 2


def slow_guess(texts, context, limit, speculation, choice="frequent"):
    """The proposal by its definition, from all occurrences of all ends of the context; ties go to the one seen last."""
    best = Guess()
    for n_matched in range(1, len(context) + 1):
        end = context[-n_matched:]
        places = [
            (text, place)
            for text in texts
            for place in range(n_matched, len(text))
            if text[place - n_matched : place] == end
        ]
        tokens, prob, survivals = [], 1.0, []
        while places and len(tokens) < speculation.allowed(n_matched, limit):
            going_on = [(text, place) for text, place in places if place + len(tokens) < len(text)]
            if not going_on:
                break
            following = [text[place + len(tokens)] for text, place in going_on]
            counts = Counter(following)
            token = (
                following[-1]
                if choice == "recent"
                else max(counts, key=lambda token: (counts[token], len(following) - following[::-1].index(token)))
            )
            prob *= counts[token] / len(following)
            if prob < speculation.min_prob:
                break
            tokens.append(token)
            survivals.append(prob)
            places = [(text, place) for text, place in going_on if text[place + len(tokens) - 1] == token]
        if tokens and sum(survivals) >= best.score:
            best = Guess(tuple(tokens), n_matched, tuple(survivals))
    return best


@pytest.mark.parametrize("choice", ["frequent", "recent"])
@pytest.mark.parametrize("speculation", [Speculation(), Speculation(2, 1, 0.3), Speculation(0, 3, 0.6)], ids=str)
def test_proposals_equal_their_definition(choice, speculation):
    rng = np.random.default_rng(1)
    compared = 0
    for _ in range(200):
        text = rng.integers(0, 3, rng.integers(1, 24)).tolist()
        tree = SuffixTree(choice)
        tree.begin()
        tree.extend(text)
        found, expected = tree.guess_next(6, speculation), slow_guess([text], text, 6, speculation, choice)
        # what runs into the end of the text goes on with itself, which the definition does not
        n_same = len(expected.tokens)
        if found.n_matched == expected.n_matched:
            assert found.tokens[:n_same] == expected.tokens
            assert found.score == pytest.approx(expected.score) or len(found.tokens) > n_same
            compared += 1
        else:
            assert found.score >= expected.score - 1e-12
            assert len(found.tokens) > 0
    assert compared > 150


def test_the_most_frequent_wins_or_the_most_recent_if_asked_for():
    context = [1, 2, 1, 2, 1, 3, 1]
    short = Speculation(offset=0, factor=1)
    assert SuffixDecoding(short).propose(context, 1, **ASK).tokens == (2,)
    assert SuffixDecoding(short, "recent").propose(context, 1, **ASK).tokens == (3,)


def test_a_longer_match_allows_a_longer_draft():
    context = [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3]
    assert SuffixDecoding(Speculation(1)).propose(context, 8, **ASK).tokens == (4, 5, 6)
    assert SuffixDecoding(Speculation(2)).propose(context, 8, **ASK).tokens == (4, 5, 6, 7, 8, 9)
    assert SuffixDecoding(Speculation(2)).propose(context, 4, **ASK).tokens == (4, 5, 6, 7)
    assert SuffixDecoding(Speculation(0, 1)).propose(context, 8, **ASK).tokens == (4,)


def test_a_copy_that_reaches_the_end_goes_on_with_itself():
    assert SuffixDecoding(FREE).propose([1, 2, 3, 1, 2, 3], 8, **ASK).tokens == (1, 2, 3, 1, 2, 3, 1, 2)


def test_an_unlikely_continuation_is_not_proposed():
    context = [9, 1, 9, 2, 9, 3, 9, 4, 9]
    assert SuffixDecoding(Speculation(min_prob=0.25)).propose(context, 1, **ASK).tokens == (4,)
    draft = SuffixDecoding(Speculation(min_prob=0.26)).propose(context, 1, **ASK)
    assert (draft.tokens, draft.note) == ((), "nothing that is likely enough followed the end of the context before")


def test_the_least_probability_tells_only_beyond_what_the_policy_asks_for():
    """The second token follows in one of three places: 0.33 in all, which `confident` does not go on for."""
    context = [9, 1, 5, 9, 1, 6, 9, 1, 7, 9, 1]

    def n_drafted(min_prob, go_on):
        drafter = SuffixDecoding(Speculation(factor=2.0, min_prob=min_prob))
        return len(drafter.propose(context[:-1], 2, go_on=go_on, **ASK).tokens)

    assert [n_drafted(min_prob, Confident()) for min_prob in (0.0, 0.1, 0.3, FURTHER, 0.9)] == [1] * 5
    assert [n_drafted(min_prob, FixedLength()) for min_prob in (0.0, 0.1, 0.3, FURTHER, 0.9)] == [2, 2, 2, 1, 1]
    assert "suffix decoding stand back" in Confident().guarantee


def test_what_is_proposed_is_one_hot_and_a_short_draft_says_why():
    draft = SuffixDecoding().propose([5, 6, 7, 8, 5, 6], 4, **ASK)
    assert draft.laws == tuple(map(OneHot, draft.tokens))
    assert draft.logits is None
    assert draft.note == "the last 2 tokens occurred before: that suggests no more"
    assert SuffixDecoding().propose([5, 6, 7, 8, 5, 6], 2, **ASK).note == ""


def test_reading_step_by_step_and_a_context_that_is_no_extension_make_no_difference():
    rng = np.random.default_rng(2)
    drafter = SuffixDecoding(FREE)
    context = rng.integers(0, 3, 5).tolist()
    for step in range(60):
        context = context[: rng.integers(1, len(context))] if step % 7 == 6 else context
        context = [*context, *rng.integers(0, 3, rng.integers(1, 4)).tolist()]
        fresh = SuffixDecoding(FREE)
        fresh.prepare(context)
        assert drafter.propose(context, 6, **ASK) == fresh.propose(context, 6, **ASK)


def test_a_step_reads_only_what_is_new(monkeypatch):
    read = []
    extend = SuffixTree.extend
    monkeypatch.setattr(SuffixTree, "extend", lambda tree, tokens: read.append(len(tokens)) or extend(tree, tokens))
    drafter = SuffixDecoding()
    drafter.prepare([1, 2, 3])
    drafter.propose([1, 2, 3], 4, **ASK)
    drafter.propose([1, 2, 3, 4, 5], 4, **ASK)
    assert read == [3, 0, 2]


def n_steps_to_copy(drafter, text, *, limit):
    """Steps until `text` has been repeated, where every guess of the right token is kept."""
    context, left, n_steps = [*text, *text[:2]], text[2:], 0
    drafter.prepare(context)
    while left:
        draft = drafter.propose(context, min(limit, len(left)), **ASK)
        n_kept = 0
        while n_kept < len(draft.tokens) and draft.tokens[n_kept] == left[n_kept]:
            n_kept += 1
        emitted = left[: n_kept + 1]
        context, left, n_steps = [*context, *emitted], left[n_kept + 1 :], n_steps + 1
    return n_steps


@pytest.mark.parametrize("seed", range(5))
def test_a_copy_takes_no_more_steps_than_with_prompt_lookup(seed):
    """Where the same three words stand at several places, a longer match knows which of them is meant."""
    rng = np.random.default_rng(seed)
    phrases = [rng.integers(0, 50, 4).tolist() for _ in range(5)]
    text = [token for place in rng.integers(0, 5, 30) for token in phrases[place]]
    suffix, lookup = (n_steps_to_copy(drafter, text, limit=8) for drafter in (SuffixDecoding(), PromptLookup()))
    assert suffix < lookup


def test_earlier_outputs_are_proposed_where_they_score_better():
    outputs = EarlierOutputs()
    drafter = SuffixDecoding(outputs=outputs)
    assert drafter.propose([1, 2, 3], 4, **ASK).tokens == ()
    drafter.finished([1, 2, 3, 4, 5, 6])
    assert drafter.propose([1, 2, 3], 4, **ASK).tokens == (4, 5, 6)
    assert drafter.propose([1, 2, 3, 7, 8, 9, 1, 2, 3], 4, **ASK).tokens == (7, 8, 9)  # a tie: the run's own
    outputs.clear()
    assert outputs.n_outputs == outputs.n_nodes == 0
    assert drafter.propose([1, 2, 3], 4, **ASK).tokens == ()


def test_without_earlier_outputs_a_run_leaves_nothing_behind():
    drafter = SuffixDecoding()
    drafter.finished([1, 2, 3, 4])
    assert drafter.propose([1, 2, 3], 4, **ASK).tokens == ()


def test_ten_thousand_outputs_stay_under_the_cap():
    outputs = EarlierOutputs(max_nodes=2000)
    rng = np.random.default_rng(0)
    phrases = [rng.integers(0, 500, 4).tolist() for _ in range(40)]
    most = 0
    for one, two, between in zip(*rng.integers(0, 40, (2, 10_000)), rng.integers(0, 500, 10_000), strict=True):
        outputs.add([*phrases[one], int(between), *phrases[two]])
        most = max(most, outputs.n_nodes)
    assert 1000 < most <= 2000
    assert outputs.guess(phrases[0][:2], 2, Speculation()).tokens == tuple(phrases[0][2:])


def test_outputs_that_are_all_the_same_stay_under_the_cap_too():
    outputs = EarlierOutputs(max_nodes=100)
    for _ in range(200):
        outputs.add([1, 2, 3])
    assert outputs.n_outputs == 33  # of 3 tokens each, though they take no more nodes than one


def test_threads_may_share_what_is_remembered():
    outputs = EarlierOutputs(max_nodes=500)
    failures = []

    def work(seed):
        try:
            for text in random_texts(seed, 150, vocab_size=6):
                outputs.add(text)
                outputs.guess(text[:3], 4, Speculation())
        except Exception as failure:
            failures.append(failure)

    threads = [Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert 0 < outputs.n_nodes <= 500


def test_the_process_keeps_the_outputs_of_each_target_apart_until_it_is_told_to_forget():
    forget_outputs()
    outputs_of("one").add([1, 2])
    assert outputs_of("one") is outputs_of("one")
    assert outputs_of("two").n_outputs == outputs_of("one", "recent").n_outputs == 0
    assert outputs_of("one").n_outputs == 1
    forget_outputs()
    assert outputs_of("one").n_outputs == 0
    outputs_of("one").add([1, 2])
    for name in range(MOST_TREES):
        outputs_of(f"target {name}")
    assert outputs_of("one").n_outputs == 0  # gone, as the least recently used
    forget_outputs()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"factor": -1.0}, "suffix factor is -1.0"),
        ({"factor": float("nan")}, "suffix factor is nan"),
        ({"offset": 33.0}, "suffix offset is 33.0"),
        ({"min_prob": 1.5}, "least probability is 1.5"),
        ({"factor": 0.0, "offset": 0.5}, "would never propose"),
    ],
    ids=str,
)
def test_a_setting_out_of_range_is_refused(settings, told):
    with pytest.raises(SettingError, match=told):
        Speculation(**settings)


def test_allowed_lengths_grow_with_the_match():
    allowed = [Speculation(1.5, -1).allowed(n_matched, 6) for n_matched in range(1, 8)]
    assert allowed == [0, 2, 3, 5, 6, 6, 6]
    assert all(low <= high for low, high in pairwise(allowed))
