"""Runs that draft trees: the loop, its bookkeeping, and what a policy learns of them."""

from collections import Counter
from dataclasses import replace

import pytest

from engine.acceptance import ExactRejection, TreeDistinct, TreeIndependent, TreeMatch
from engine.build import build
from engine.decode import decode
from engine.drafters import ModelDrafter, TreeDrafter
from engine.errors import SettingError
from engine.event_json import event_from_json, event_to_json
from engine.explain import explain
from engine.lengths import CostAware, FixedLength, Heuristic, StepOutcome
from engine.metrics import measure
from engine.models.markov import load_markov
from engine.sampling import OneHot
from engine.spec import RunSpec
from engine.step_checks import check_step
from engine.tree import chain, depths
from engine.values import Draft, Finished, Step
from tests.engine.toys import Proposing, letters, random_model
from tests.engine.tree_runs import GREEDY, KEPT, PROMPTS, RULES, one_step, random_run, steps_of, tree


@pytest.mark.parametrize("chunk", range(5))
def test_identities_hold_in_random_runs(chunk):
    seen = Counter()
    for number in range(chunk, 200, 5):
        events = list(random_run(number, probe=number % 4))
        n = Counter()
        for step in steps_of(events):
            check_step(step)  # what a file must say of a step, the engine says
            for decision in step.decisions:
                n[decision.outcome] += 1
                n["drafted"] += decision.draft_token is not None
                n["discarded"] += decision.discarded
            emitted = [d.target_token for d in step.decisions if d.outcome in KEPT and not d.discarded]
            assert tuple(emitted) == step.emitted, number
            n["depth"] += step.depth
        figures = measure(events)
        assert isinstance(events[-1], Finished)
        assert events[-1].reason != "error", (number, events[-1].error)
        assert figures.identities_ok, number
        names = ("drafted", "accepted", "rejected", "declined", "unreached", "bonus", "plain", "discarded")
        assert [getattr(figures, name) for name in names] == [n[name] for name in names], number
        assert n["drafted"] == n["accepted"] + n["rejected"] + n["declined"] + n["unreached"], number
        assert figures.steps == n["rejected"] + n["bonus"] + n["plain"], number
        assert sum(row.drafted for row in figures.per_position) == n["depth"], number
        assert figures.tokens_generated == len(events[-1].ids), number
        for event in events:
            assert event_from_json(event_to_json(event)) == event, number
        seen += n
    assert min(seen[name] for name in ("declined", "unreached", "bonus", "plain", "discarded", "rejected")) > 0


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("target", ["markov", "noisy"])
def test_greedy_text_is_the_plain_text(rule, target):
    spec = RunSpec(target=target, prompt="3 14" if target == "noisy" else PROMPTS[1], temperature=0, max_tokens=60)
    *_, plain = build(replace(spec, drafter="none")).events()
    for length in (1, 3, 8):
        for width, n_nodes in ((2, 4), (3, 16), (8, 32)):
            ways = replace(spec, rule=rule, draft_length=length, tree_width=width, tree_nodes=n_nodes)
            events = list(build(ways).events())
            assert (events[-1].ids, events[-1].text) == (plain.ids, plain.text)
            assert max(step.n_drafted for step in steps_of(events)) <= n_nodes
            assert max(step.depth for step in steps_of(events)) <= length


def test_siblings_gain_over_a_chain():
    """At temperature 0 the second best guess is often the right one."""

    def tokens_per_step(**settings):
        spec = RunSpec(prompt=PROMPTS[0], temperature=0, max_tokens=200, rule="tree-match", **settings)
        return measure(build(spec).events()).tokens_per_step

    assert tokens_per_step(tree_width=4, tree_nodes=32) > 1.3 * tokens_per_step(tree_width=1)


@pytest.mark.parametrize("rule", RULES)
def test_each_of_the_best_tokens_of_a_depth_may_have_as_many_behind_it_as_the_width(rule):
    """Up to 2 + 4 + 4 + 4 tokens, of which as many are kept, or drawn, as were asked for."""
    spec = RunSpec(prompt=PROMPTS[0], max_tokens=40, rule=rule, draft_length=4, tree_width=2, temperature=1.0)
    for n_nodes in (4, 10, 14):
        drafted = steps_of(build(replace(spec, tree_nodes=n_nodes)).events())
        assert max(step.n_drafted for step in drafted) == n_nodes
        for step in drafted:
            if step.parents:
                assert max(Counter(step.parents).values()) <= 2
                assert max(Counter(depths(step.parents)).values()) <= 4


@pytest.mark.parametrize("rule", ["tree-independent", "tree-distinct"])
def test_drawn_siblings_use_all_the_tokens_of_a_tree(rule):
    spec = RunSpec(prompt=PROMPTS[0], temperature=1.5, max_tokens=40, rule=rule, tree_width=4, tree_nodes=32)
    steps = [event for event in build(spec).events() if isinstance(event, Step)]
    full = [step for step in steps if step.depth == spec.draft_length]
    assert {step.n_drafted for step in full} == {32}
    for step in full:
        across = Counter(depths(step.parents))
        assert max(across.values()) > 4
        assert max(Counter(step.parents).values()) <= 4


@pytest.mark.parametrize("rule", [TreeIndependent(), TreeDistinct()], ids=lambda rule: rule.name)
def test_a_tree_of_width_1_gives_the_tokens_of_the_exact_rule(rule):
    loaded = load_markov()
    ids, size = loaded.tokenizer.encode(PROMPTS[0]), loaded.model.vocab_size
    *_, exact = decode(loaded.model, ModelDrafter(loaded.partner, size), ids, max_tokens=60, seed=5)
    drafter = TreeDrafter(loaded.partner, size, children=rule.children, width=1, n_nodes=32)
    *_, tree = decode(loaded.model, drafter, ids, rule=rule, max_tokens=60, seed=5)
    assert tree.ids == exact.ids


# ---- one step, by hand ----


def test_the_kept_branch_is_emitted_and_the_others_say_why_not():
    guess, step = one_step(tree("xabycd", (-1, -1, 1, 1, 2, 2)), "abdz")
    assert (guess.parents, guess.texts) == ((-1, -1, 1, 1, 2, 2), ("x", "a", "b", "y", "c", "d"))
    assert [d.outcome for d in step.decisions] == [
        "declined", "accepted", "accepted", "unreached", "declined", "accepted", "bonus"
    ]  # fmt: skip
    assert step.emitted == tuple(letters("abdz"))
    assert step.guess == guess
    assert (step.n_drafted, step.n_accepted, step.depth) == (6, 3, 3)
    assert [d.parent for d in step.decisions] == [-1, -1, 1, 1, 2, 2, 5]


def test_the_last_sibling_that_is_refused_is_the_rejected_one():
    _, step = one_step(tree("axyb", (-1, 0, 0, 1)), "acz", probe=3)
    assert [d.outcome for d in step.decisions] == ["accepted", "declined", "rejected", "unreached"]
    assert step.emitted == tuple(letters("ac"))
    rejected = step.decisions[2]
    assert (rejected.target_text, rejected.target_token) == ("c", *letters("c"))
    choice = step.evidence.choice
    assert choice.position == 2
    told = explain(step, rule="tree-match")["choice"]
    marks = {row["text"]: (row["guess"], row["taken"]) for row in told["alternatives"]}
    assert (marks["x"], marks["y"], marks["c"]) == ((True, False), (True, False), (False, True))


def test_end_token_on_a_branch_takes_effect_and_nothing_stands_behind_it():
    guess, step = one_step(tree("xabcd", (-1, -1, 1, 2, 0)), "abc", end_tokens=frozenset(letters("a")))
    assert guess.tokens == tuple(letters("xad"))
    assert guess.parents == (-1, -1, 0)
    assert step.emitted == tuple(letters("a"))
    assert step.decisions[-1].outcome == "bonus"
    assert step.decisions[-1].discarded


def test_limit_cuts_a_branch():
    """One place is the target's, so a draft is at most as long as leaves room for it."""
    _, step = one_step(tree("ab", (-1, 0)), "abcd", max_tokens=3)
    assert step.emitted == tuple(letters("abc"))


def test_a_policy_does_not_take_the_end_of_a_short_branch_for_a_refusal():
    """The way ends with a bonus behind one of two siblings; behind the other one three more were drafted."""
    short, full, refused = Heuristic(6), Heuristic(6), Heuristic(6)
    for policy, says in ((short, "xz"), (full, "abcdz"), (refused, "abz")):
        policy.observe(StepOutcome(6, 0))
        assert policy.next_length() == 5
        one_step(tree("xabcd", (-1, -1, 1, 2, 3)), says, lengths=policy, end_tokens=frozenset(letters("z")))
    assert (short.next_length(), full.next_length(), refused.next_length()) == (6, 6, 4)


def test_length_policies_learn_refusals_that_happened_and_no_others():
    outcomes = []

    class Watching(FixedLength):
        def observe(self, outcome):
            outcomes.append(outcome)

    loaded = load_markov()
    events = decode(
        loaded.model, TreeDrafter(loaded.partner, loaded.model.vocab_size), loaded.tokenizer.encode(PROMPTS[0]),
        rule=TreeMatch(), sampling=GREEDY, lengths=Watching(4), max_tokens=60,
    )  # fmt: skip
    steps = steps_of(events)
    n_short = 0
    for step, outcome in zip(steps, outcomes, strict=True):
        whole = step.decisions[-1].outcome == "bonus"
        assert (outcome.n_drafted, outcome.n_accepted, outcome.kept_whole) == (step.depth, step.n_accepted, whole)
        assert outcome.n_in_branch == (step.n_accepted if whole else step.depth)
        n_short += whole and step.n_accepted < step.depth
    assert n_short > 3


@pytest.mark.parametrize(("kept_whole", "longest"), [(True, 4), (False, 1)])
def test_what_a_short_branch_did_not_hold_was_not_refused_to_a_policy_that_weighs_costs(kept_whole, longest):
    policy = CostAware(4)
    for _ in range(40):
        n = policy.next_length()
        policy.observe(StepOutcome(n, min(n, 1), 0.1 * n, 1.0, kept_whole or n < 2))
    assert policy.next_length() == longest


def test_an_empty_tree_is_a_plain_step():
    guess, step = one_step(Draft(parents=()), "abc")
    assert (guess.parents, step.decisions[0].outcome, step.decisions[0].parent) == (None, "plain", None)


@pytest.mark.parametrize(
    ("draft", "message"),
    [
        (tree("ab", (-1,)), "a tree of 2 tokens with the parents (-1,)"),
        (tree("ab", (0, -1)), "for each the place of one before it, or -1"),
        (tree("ab", (-2, 0)), "for each the place of one before it, or -1"),
        (tree("ab" * 17, (-1,) * 34), "at most 32 tokens"),
        (replace(tree("ab", (-1, -1)), laws=(OneHot(0),)), "2 tokens, 1 of them in a row, with 1 laws"),
        (tree("abcdefghi", chain(9)), "9 tokens, 9 of them in a row, with 9 laws; expected at most 8"),
    ],
)
def test_impossible_tree_ends_the_run_with_its_reason(draft, message):
    *_, finished = decode(random_model(1, 26), Proposing(draft), [0], rule=TreeMatch(), lengths=FixedLength(8))
    assert finished.reason == "error"
    assert message in finished.error


def test_a_rule_for_chains_refuses_a_tree():
    *_, finished = decode(random_model(1, 26), Proposing(tree("ab", (-1, -1))), [0], rule=ExactRejection())
    assert "the rule exact judges chains only" in finished.error


class Wandering(TreeMatch):
    """Tests the tokens of a tree in another order than it may."""

    def judge(self, draft, rows, *, noise, start):
        verdict = super().judge(draft, rows, noise=noise, start=start)
        return replace(verdict, nodes=verdict.nodes[::-1] if len(verdict.nodes) > 1 else (5,))


def test_a_rule_that_does_not_walk_down_the_tree_is_refused():
    *_, finished = decode(random_model(1, 26), Proposing(tree("ab", (-1, -1))), [0], rule=Wandering(), sampling=GREEDY)
    assert "step 1: the rule tree-match tested" in finished.error
    assert "(those at" in finished.error


# ---- settings ----


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tree_width": 0}, "tree_width is 0"),
        ({"tree_width": 9, "rule": "tree-match"}, "a whole number from 1 to 8"),
        ({"tree_nodes": 33}, "tree_nodes is 33"),
    ],
)
def test_settings_that_make_no_tree_are_refused_in_words(settings, message):
    with pytest.raises(SettingError, match=message):
        build(RunSpec(prompt="The draft", **settings))


@pytest.mark.parametrize(
    "settings", [{}, {"rule": "tree-match", "drafter": "ngram"}, {"rule": "tree-match", "tree_width": 1}]
)
def test_where_no_tree_can_be_a_chain_is_drafted(settings):
    events = list(build(RunSpec(prompt="The draft of the draft", max_tokens=30, **settings)).events())
    assert events[-1].reason == "length"
    assert {step.parents for step in steps_of(events)} == {None}


# ---- what is kept of a run ----
