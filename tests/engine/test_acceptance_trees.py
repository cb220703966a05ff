"""The tree rules, held to their definition by enumeration; they keep as much as published."""

from functools import cache

import numpy as np
import pytest

from engine.acceptance import ExactRejection, NaiveThreshold, TreeDistinct, TreeIndependent, TreeMatch
from engine.acceptance.tree import children_of, walk
from engine.errors import DraftError
from engine.sampling import Dense, Noise, OneHot, Purpose, Rows, Sampling, law
from engine.tree import branch, children
from engine.values import Draft, Tested
from tests.engine.oracle import BELOW_ONE, plain_law, target_law, total_variation

PLAIN = Sampling(temperature=1)
RULES = [TreeIndependent(), TreeDistinct(), TreeMatch()]
SHAPES = {
    "three ways": (-1, -1, -1),
    "a chain": (-1, 0, 1),
    "a fork behind a token": (-1, 0, 0),
    "forks behind forks": (-1, -1, 0, 0, 1),
}
P = np.array([0.5, 0.3, 0.2])


class Asked(Exception):
    """A number was looked at that has not been chosen yet."""


class Choices:
    """A stand-in for `Noise` that follows a script: numbers for tests, tokens for draws.

    Behind the end of the script it raises, or goes on with numbers in the middle.
    """

    def __init__(self, script, *, goes_on=False):
        self._script = list(script)
        self._goes_on = goes_on

    def uniform(self, position, purpose, place=0):
        assert purpose == Purpose.ACCEPT
        if not self._script and not self._goes_on:
            raise Asked("number")
        return self._script.pop(0) if self._script else 0.5

    def draw(self, law, position, purpose, place=0):
        assert purpose == Purpose.TARGET
        if not self._script and not self._goes_on:
            raise Asked(law)
        return self._script.pop(0) if self._script else law.draw(0.5)


def verdicts(rule, draft, rows, vocab_size, script=(), weight=1.0):
    """All verdicts that a rule may come to, each with its probability."""
    try:
        yield weight, rule.judge(draft, rows, noise=Choices(script), start=0)
        return
    except Asked as asked:
        (what,) = asked.args
    if what == "number":
        place = sum(isinstance(choice, float) for choice in script)
        test = rule.judge(draft, rows, noise=Choices([*script, 0.5], goes_on=True), start=0).tested[place]
        share = test.accept_prob  # that this is where the verdict flips has a test of its own
        options = [(0.0, share), (BELOW_ONE, 1 - share)]
    else:
        options = [(int(token), float(what.prob(token))) for token in range(vocab_size)]
    for choice, share in options:
        if share > 0:
            yield from verdicts(rule, draft, rows, vocab_size, (*script, choice), weight * share)


def sibling_laws(draft_law, before, how):
    """The law of the next sibling, after those in `before`; slow and independent of `engine.drafters.siblings`."""
    probs = np.array(draft_law, float)
    if how == "best":
        order = sorted(range(len(probs)), key=lambda token: (-probs[token], token))
        return OneHot(order[len(before)])
    if how == "distinct":
        probs[list(before)] = 0
    return Dense(probs / probs.sum())


def output_of_trees(rule, target_logits, draft_law, sampling, *, links, how, vocab_size):
    """The law of the first tokens when a tree of that shape is followed by plain sampling; axes as in `output_law`."""
    depth = max(len(branch(links, node)) for node in range(len(links)))
    found = np.zeros((vocab_size,) * (depth + 1))

    def emit(tokens, weight):
        if len(tokens) == depth + 1:
            found[tokens] += weight
            return
        for token, prob in enumerate(target_law(target_logits(tokens), sampling)):
            if prob:
                emit((*tokens, token), weight * prob)

    def grow(tokens, laws, weight):
        node = len(tokens)
        if node < len(links):
            way = tuple(tokens[place] for place in branch(links, links[node]))
            before = [tokens[place] for place in children(links)[links[node] + 1] if place < node]
            drawn_from = sibling_laws(draft_law(way), before, how)
            for token in range(vocab_size):
                if drawn_from.prob(token):
                    grow((*tokens, token), (*laws, drawn_from), weight * drawn_from.prob(token))
            return
        draft = Draft(tokens, laws, parents=links)
        ways = [tuple(tokens[place] for place in branch(links, end)) for end in range(-1, len(links))]
        rows = Rows(np.array([target_logits(way) for way in ways]), sampling)
        for share, verdict in verdicts(rule, draft, rows, vocab_size):
            kept = tuple(tokens[place] for place in branch(links, verdict.last_kept))
            emit((*kept, verdict.token), weight * share)

    grow((), (), 1.0)
    return found


def random_pair(vocab_size, seed, zeros=0):
    @cache
    def logits(side, tokens):
        rng = np.random.default_rng([seed, side, len(tokens), *tokens])
        row = rng.normal(0, 1.5, vocab_size)
        row[rng.permutation(vocab_size)[:zeros]] = -np.inf
        return row

    return (lambda tokens: logits(0, tuple(tokens))), (lambda tokens: law(logits(1, tuple(tokens)), PLAIN).probs)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize("how", ["independent", "distinct", "best"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("zeros", [0, 1])
def test_output_law_equals_the_target_law(rule, how, shape, zeros):
    """Every rule with every kind of siblings, its own or not, as long as the laws are those that were drawn from."""
    links = SHAPES[shape]
    vocab_size = 4 if shape == "three ways" else 3
    size = {"vocab_size": vocab_size}
    pair = random_pair(vocab_size, len(links), zeros)
    found = output_of_trees(rule, *pair, PLAIN, links=links, how=how, **size)
    assert found.sum() == pytest.approx(1, abs=1e-12)
    assert total_variation(found, plain_law(pair[0], PLAIN, length=found.ndim - 1, **size)) < 1e-12


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize(
    "sampling", [Sampling(0.6), Sampling(1.4, top_k=2), Sampling(1, top_p=0.8), Sampling(0)], ids=str
)
def test_output_law_equals_the_processed_target_law(rule, sampling):
    pair = random_pair(4, 7)
    found = output_of_trees(rule, *pair, sampling, links=(-1, -1, 0), how=rule.children, vocab_size=4)
    assert total_variation(found, plain_law(pair[0], sampling, length=2, vocab_size=4)) < 1e-12


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize("seed", range(34))
def test_chains_are_judged_without_loss_too(rule, seed):
    pair = random_pair(3, seed)
    size = {"length": 3, "vocab_size": 3}
    found = output_of_trees(rule, *pair, PLAIN, links=(-1, 0, 1), how="independent", vocab_size=3)
    assert total_variation(found, plain_law(pair[0], PLAIN, **size)) < 1e-12


def test_one_guess_at_every_place_is_the_exact_rule_draw_for_draw():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        laws = tuple(Dense(row) for row in rng.dirichlet([0.5] * 4, size=3))
        draft = Draft(tuple(Noise(seed).draw(guess, place, Purpose.DRAFT) for place, guess in enumerate(laws)), laws)
        rows = Rows(rng.normal(0, 1, (4, 4)), PLAIN)
        exact = ExactRejection().judge(draft, rows, noise=Noise(seed), start=5)
        for rule in (TreeIndependent(), TreeDistinct()):
            found = rule.judge(draft, rows, noise=Noise(seed), start=5)
            assert found.token == exact.token
            numbers = [(t.accepted, t.draft_prob, t.target_prob, t.accept_prob, t.draw) for t in exact.tested]
            assert [(t.accepted, t.draft_prob, t.target_prob, t.accept_prob, t.draw) for t in found.tested] == numbers
            assert found.places == exact.places


def mean_kept(rule, how, most, pairs):
    """The chance that one of the first 1, 2, ..., `most` guesses is kept, averaged over pairs of laws."""
    total = np.zeros(most)
    for target, guess in pairs:
        rows = Rows(np.tile(np.log(target), (most + 1, 1)), PLAIN)

        def chances(tokens=(), laws=(), rows=rows, guess=guess):
            if len(tokens) == most:
                draft = Draft(tokens, laws, parents=(-1,) * most)
                tests = rule.judge(draft, rows, noise=Refusing(), start=0).tested
                return 1 - np.cumprod([1 - test.accept_prob for test in tests] + [0.0] * (most - len(tests)))
            drawn_from = sibling_laws(guess, tokens, how)
            return sum(
                drawn_from.prob(token) * chances((*tokens, token), (*laws, drawn_from))
                for token in range(5)
                if drawn_from.prob(token)
            )

        total += chances()
    return total / len(pairs)


class Refusing:
    """The highest numbers there are, so that every guess is tested; a draw gives a token that is no guess."""

    def uniform(self, position, purpose, place=0):
        return BELOW_ONE

    def draw(self, law, position, purpose, place=0):
        return -1


PAIRS = [tuple(rows) for rows in np.random.default_rng(1).dirichlet([0.6] * 5, size=(200, 2))]


@pytest.mark.parametrize(
    ("rule", "published"),
    [(TreeIndependent(), (0.469, 0.560, 0.610, 0.645)), (TreeDistinct(), (0.469, 0.629, 0.760, 0.866))],
    ids=lambda value: getattr(value, "name", ""),
)
def test_as_much_is_kept_as_published_over_200_random_pairs_of_five_tokens(rule, published):
    """Means for 1 to 4 guesses, over pairs from Dirichlet(0.6)."""
    assert mean_kept(rule, rule.children, 4, PAIRS) == pytest.approx(published, abs=0.01)


def test_the_most_probable_guesses_are_kept_with_what_the_target_gives_them_together():
    for target, guess in PAIRS[:50]:
        best = np.argsort(-guess, kind="stable")[:4]
        assert mean_kept(TreeMatch(), "best", 4, [(target, guess)]) == pytest.approx(np.cumsum(target[best]))


class DrawingAnew:
    """As `TreeMatch`, but wrong: a token of the target for every guess, of which the last stands if none matches."""

    def judge(self, draft, rows, *, noise, start):
        def look_up(target, siblings, position):
            tests = []
            for node in siblings:
                own, guess = noise.draw(target, position, Purpose.TARGET), draft.tokens[node]
                tests.append(Tested(own == guess, 1.0, target.prob(guess), target.prob(guess), None))
                if own == guess:
                    return tests, None
            return tests, (own, None)

        return walk(draft, rows, look_up, noise=noise, start=start)


def test_drawing_once_for_all_guesses_is_right_and_drawing_anew_for_each_would_not_be():
    """fms-extras#12: guesses 0 and 1, and a target of (.5, .3, .2)."""
    draft = Draft((0, 1), (OneHot(0), OneHot(1)), parents=(-1, -1))
    found = np.zeros(3)
    for weight, verdict in verdicts(TreeMatch(), draft, Rows(np.log(np.tile(P, (3, 1))), PLAIN), 3):
        found[verdict.token if verdict.last_kept < 0 else draft.tokens[verdict.last_kept]] += weight
    assert found == pytest.approx(P)
    anew = np.zeros(3)
    for weight, verdict in verdicts(DrawingAnew(), draft, Rows(np.log(np.tile(P, (3, 1))), PLAIN), 3):
        anew[verdict.token if verdict.last_kept < 0 else draft.tokens[verdict.last_kept]] += weight
    assert anew == pytest.approx([0.75, 0.15, 0.10])


@pytest.mark.parametrize("rule", [TreeIndependent(), TreeDistinct()], ids=lambda rule: rule.name)
def test_reported_acceptance_probability_is_where_the_verdict_flips(rule):
    rng = np.random.default_rng(4)
    for _ in range(50):
        target, guess = rng.dirichlet([0.6] * 4), rng.dirichlet([0.6] * 4)
        laws = tuple(sibling_laws(guess, [0, 1, 2][:k], rule.children) for k in range(3))
        draft = Draft((0, 1, 2), laws, parents=(-1, -1, -1))
        rows = Rows(np.log(np.tile(target, (4, 1))), PLAIN)
        tests = rule.judge(draft, rows, noise=Refusing(), start=0).tested
        for place, test in enumerate(tests):
            for factor in (1 - 1e-9, 1 + 1e-9):
                script = [*[BELOW_ONE] * place, min(BELOW_ONE, test.accept_prob * factor)]
                found = rule.judge(draft, rows, noise=Choices(script, goes_on=True), start=0).tested[place]
                assert found.accepted == (test.accept_prob > 0 and (factor < 1 or test.accept_prob == 1))


def test_a_guess_that_has_been_refused_is_not_kept_when_it_comes_again():
    rows = Rows(np.log(np.tile(P, (4, 1))), PLAIN)
    draft = Draft((0, 0, 1), (OneHot(0), OneHot(0), OneHot(1)), parents=(-1, -1, -1))
    for rule in RULES:
        for seed in range(50):
            verdict = rule.judge(draft, rows, noise=Noise(seed), start=0)
            if len(verdict.tested) > 1:
                assert not verdict.tested[1].accepted
                assert verdict.tested[1].accept_prob == 0


def test_matching_tells_what_is_left_for_a_guess_by_the_guesses_before_it():
    rows = Rows(np.log(np.tile(P, (4, 1))), PLAIN)
    draft = Draft((0, 1, 2), (OneHot(0), OneHot(1), OneHot(2)), parents=(-1, -1, -1))
    seen = set()
    for seed in range(60):
        verdict = TreeMatch().judge(draft, rows, noise=Noise(seed), start=0)
        seen.add(len(verdict.tested))
        assert [test.accept_prob for test in verdict.tested] == pytest.approx([0.5, 0.6, 1.0][: len(verdict.tested)])
        assert verdict.tested[-1].accepted
        assert verdict.token in (0, 1, 2)  # the extra token behind the branch
    assert seen == {1, 2, 3}


def test_at_temperature_0_the_sibling_that_the_target_takes_is_kept():
    greedy = Rows(np.array([[0.0, 2.0, 1.0], [9.0, 0.0, 0.0], [0.0, 0.0, 9.0], [0.0, 9.0, 0.0]]), Sampling(0))
    draft = Draft((0, 1, 2), (OneHot(0), OneHot(1), OneHot(2)), parents=(-1, -1, 1))
    for rule in RULES:
        verdict = rule.judge(draft, greedy, noise=Noise(3), start=0)
        assert (verdict.places, verdict.last_kept, verdict.token) == ((0, 1, 2), 2, 1)
        assert verdict.deciding is None


def test_which_rules_take_trees():
    assert [children_of(rule) for rule in RULES] == ["independent", "distinct", "best"]
    assert children_of(ExactRejection()) is None
    assert children_of(NaiveThreshold(0.1)) is None


def test_chances_of_a_chain_are_told_and_those_of_a_tree_refused():
    rows = Rows(np.log(np.tile(P, (3, 1))), PLAIN)
    draft = Draft((0, 1), (OneHot(0), OneHot(1)), parents=(-1, 0))
    for rule in RULES:
        assert [chance for chance, _ in rule.chances(draft, rows)] == pytest.approx([0.5, 0.5 * 0.7, 0.5 * 0.3])
        with pytest.raises(DraftError, match="the chances of a tree"):
            rule.chances(Draft(draft.tokens, draft.laws, parents=(-1, -1)), rows)


def test_an_empty_draft_gives_a_token_of_the_target():
    for rule in RULES:
        verdict = rule.judge(Draft(), Rows(np.log([[0.2, 0.8]]), PLAIN), noise=Noise(1), start=0)
        assert (verdict.tested, verdict.last_kept, verdict.deciding) == ((), -1, None)
