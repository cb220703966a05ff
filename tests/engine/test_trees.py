"""Runs that draft trees: the loop, its bookkeeping, what is kept of them, and what a file may say of one."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from engine.acceptance import ExactRejection, TreeDistinct, TreeIndependent, TreeMatch
from engine.build import build
from engine.cli.explain import explained
from engine.cli.paint import painted
from engine.decode import decode
from engine.drafters import ModelDrafter, NoDraft, TreeDrafter
from engine.errors import RunFileError, SettingError
from engine.event_json import event_from_json, event_to_json
from engine.explain import explain
from engine.export import tokens_csv
from engine.lengths import CostAware, FixedLength, Heuristic, Outcome
from engine.metrics import measure
from engine.models.markov import load_markov
from engine.sampling import OneHot, Sampling
from engine.spec import RunSpec
from engine.step_checks import check_guess, check_step
from engine.tree import branch, chain, children, depths, leaves
from engine.values import Decision, Draft, Drafted, Finished, Step
from tests.engine.toys import Pieces, Proposing, TickingClock, letters, random_model, script_model

PLAIN, GREEDY = Sampling(temperature=1), Sampling(temperature=0)
RULES = {rule.name: rule for rule in (TreeIndependent(), TreeDistinct(), TreeMatch())}
PROMPTS = ("The draft model", "A token is accepted when the", "Speculative decoding", "the target judges, and the")
KEPT = ("accepted", "rejected", "bonus", "plain")


def random_run(number, **settings):
    rng = np.random.default_rng(number)
    loaded = load_markov(agreement=float(rng.choice([-0.5, 0.0, 0.5])))
    words = loaded.tokenizer
    rule = list(RULES.values())[number % 3]
    drafter = TreeDrafter(
        loaded.partner,
        loaded.model.vocab_size,
        children=rng.choice(["independent", "distinct", "best"]),
        width=int(rng.integers(1, 6)),
        n_nodes=int(rng.integers(1, 33)),
    )
    return decode(
        loaded.model,
        drafter,
        words.encode(PROMPTS[number % 4]),
        **{
            "rule": rule,
            "lengths": FixedLength(int(rng.integers(1, 7))),
            "sampling": [GREEDY, Sampling(0.7), PLAIN, Sampling(1.3, 40, 0.95)][rng.integers(4)],
            "max_tokens": int(rng.choice([1, 2, 3, 7, 20, 40])),
            "stop": ["the"] if rng.random() < 0.2 else (),
            "end_tokens": words.end_tokens | frozenset(words.encode(" of") if rng.random() < 0.3 else ()),
            "tokenizer": words,
            "seed": number,
            "clock": TickingClock(),
            **settings,
        },
    )


def steps_of(events):
    return [event for event in events if isinstance(event, Step)]


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


def tree(text, parents):
    tokens = tuple(letters(text))
    return Draft(tokens, tuple(map(OneHot, tokens)), parents=parents)


def one_step(draft, says, *, max_tokens=9, **settings):
    """The guess and the fate of one step, at temperature 0, of a target that says `says`."""
    target = script_model(letters(says))
    events = decode(
        target, Proposing(draft), [0], rule=TreeMatch(), sampling=GREEDY, max_tokens=max_tokens, tokenizer=Pieces(),
        **{"lengths": FixedLength(8), **settings},
    )  # fmt: skip
    _, guess, step, *_ = events
    return guess, step


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
        policy.observe(Outcome(6, 0))
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
        policy.observe(Outcome(n, min(n, 1), 0.1 * n, 1.0, kept_whole or n < 2))
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


def test_csv_has_the_parent_of_every_drafted_token():
    header, *rows = tokens_csv("a1", list(random_run(7, max_tokens=20)))
    place = header.rstrip().split(",").index("parent")
    assert {row.rstrip().rsplit(",", 2)[1] for row in rows} > {"-1"}
    assert place == len(header.split(",")) - 2


def fate(*rows):
    """A step from (outcome, draft_token, target_token, parent)."""
    decisions = tuple(
        Decision(place, outcome, drafted, given, accepted=outcome == "accepted", parent=parent)
        for place, (outcome, drafted, given, parent) in enumerate(rows)
    )
    return Step(0, 1, decisions, (), 0.0, 0.5, 0.0, 0.75)


GOOD = (("declined", 1, None, -1), ("accepted", 2, 2, -1), ("rejected", 3, 4, 1), ("unreached", 5, None, 0))


def test_a_good_way_through_a_tree_is_taken():
    check_step(fate(*GOOD))
    check_step(fate(("accepted", 2, 2, -1), ("unreached", 3, None, -1), ("bonus", None, 9, 0)))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("declined", 1, None, None), ("bonus", None, 2, None)], "a declined token, and its draft is no tree"),
        ([("accepted", 1, 1, None), ("bonus", None, 2, 0)], "has a parent"),
        ([("accepted", 1, 1, -1), ("unreached", 3, None, None)], "a token of it has no parent"),
        ([("accepted", 1, 1, -1), ("unreached", 3, None, 1)], "is no tree"),
        ([("accepted", 1, 1, -1), ("unreached", 3, None, -2)], "is no tree"),
        ([("rejected", 1, 2, -1), ("unreached", 3, None, -1)], "went another way"),
        ([("unreached", 1, None, -1), ("accepted", 3, 3, -1), ("bonus", None, 2, 1)], "went another way"),
        ([("declined", 1, None, -1), ("declined", 3, None, -1)], "went another way"),
        ([("accepted", 1, 1, -1), ("declined", 3, None, -1), ("bonus", None, 2, 0)], "not on its way"),
        ([("accepted", 1, 1, -1)], "does not end its way"),
        ([("accepted", 1, 1, -1), ("bonus", None, 2, -1)], "does not end its way"),
        ([("rejected", 1, 2, -1), ("bonus", None, 2, 0)], "does not end its way"),
    ],
)
def test_a_file_cannot_say_what_could_not_be(rows, message):
    with pytest.raises(RunFileError, match=message):
        check_step(fate(*rows))


@pytest.mark.parametrize("parents", [(), (-1,), (0, 0), (-1, -2), (-1, 1)])
def test_a_guess_of_a_file_must_be_a_tree(parents):
    with pytest.raises(RunFileError, match="is no tree"):
        check_guess(Drafted(0, 9, (4, 5), ("a", "b"), 0.5, parents=parents))


def test_a_chain_is_stored_as_it_always_was():
    events = [json.loads(event_to_json(event)) for event in build(RunSpec(prompt="The draft", max_tokens=9)).events()]
    assert not [event for event in events if "parent" in json.dumps(event)]


# ---- shapes ----


def test_shapes_agree_with_each_other():
    rng = np.random.default_rng(0)
    for _ in range(100):
        links = tuple(int(rng.integers(-1, place)) for place in range(int(rng.integers(1, 12))))
        assert [len(branch(links, place)) for place in range(len(links))] == depths(links)
        below = children(links)
        assert sorted(place for places in below for place in places) == list(range(len(links)))
        assert leaves(links) == [place for place in range(len(links)) if not below[place + 1]]
        assert all(branch(links, place)[:-1] == branch(links, links[place]) for place in range(len(links)))


def test_no_draft_has_no_depth():
    assert (Draft().depth, Draft().links) == (0, ())
    loaded = load_markov()
    *_, step, _ = decode(loaded.model, NoDraft(), loaded.tokenizer.encode("The draft"), max_tokens=1)
    assert (step.depth, step.parents) == (0, None)


# ---- in a terminal ----


def test_a_terminal_shows_what_was_judged():
    _, step = one_step(tree("xabycd", (-1, -1, 1, 1, 2, 2)), "abdz")
    shown = painted(step.decisions)
    assert "y" not in shown
    assert [shown.index(letter) for letter in "xabcdz"] == sorted(shown.index(letter) for letter in "xabcdz")


def test_a_step_in_a_terminal_names_the_guesses_that_nobody_judged_in_one_line():
    _, step = one_step(tree("xabycd", (-1, -1, 1, 1, 2, 2)), "abdz")
    text = explained(explain(step, rule="tree-match"))
    assert "1. “x” declined\n" in text
    assert "3. “b” accepted, behind 2\n" in text
    assert "7. “z” bonus, behind 6\n" in text
    assert "on branches of the tree that were not gone down, so that nobody judged them (1):\n   4 “y”" in text


# ---- evidence ----


@pytest.mark.parametrize("rule", ["tree-independent", "tree-distinct"])
def test_evidence_of_a_tree_is_recomputed_from_the_models(rule):
    """Target, draft and what all refused siblings leave, at the place where the target's own token stands."""
    spec = RunSpec(prompt=PROMPTS[0], max_tokens=120, rule=rule, tree_width=3, temperature=1.0, probe=8, seed=2)
    loaded = load_markov()
    context = loaded.tokenizer.encode(spec.prompt)
    n_residuals = 0
    for step in steps_of(build(spec).events()):
        choice = step.evidence.choice
        decision = step.decisions[choice.position]
        parent = -1 if decision.parent is None else decision.parent
        way = [step.decisions[place].draft_token for place in branch(step.parents, parent)]
        target, guess = (np.exp(model.logits([*context, *way])[0]) for model in (loaded.model, loaded.partner))
        left, drawn_from = target.copy(), guess.copy()
        refused = [
            other.draft_token
            for other in step.decisions
            if decision.outcome == "rejected" and other.parent == decision.parent
        ]
        for token in refused:
            left = np.maximum(left - drawn_from, 0)
            left /= left.sum()
            if rule == "tree-distinct":
                drawn_from[token] = 0
                drawn_from /= drawn_from.sum()
        for row in choice.alternatives:
            assert row.target_prob == pytest.approx(target[row.token], abs=1e-9)
            if refused:
                assert row.draft_prob == pytest.approx(guess[row.token], abs=1e-9)
                assert row.residual_prob == pytest.approx(left[row.token], abs=1e-9)
                n_residuals += 1
        if refused:
            assert {row.token for row in choice.alternatives} >= set(refused)
            assert choice.drawn_from == "residual"
            assert choice.drawn_prob == pytest.approx(left[decision.target_token], abs=1e-9)
        context.extend(step.emitted)
    assert n_residuals > 50


def test_evidence_of_matching_strikes_all_refused_siblings_out_of_the_residual():
    spec = RunSpec(prompt=PROMPTS[0], max_tokens=120, rule="tree-match", tree_width=3, temperature=1.0, probe=8, seed=2)
    model = load_markov().model
    context = load_markov().tokenizer.encode(spec.prompt)
    n_several = 0
    for step in steps_of(build(spec).events()):
        choice = step.evidence.choice
        assert {found.exact for found in step.evidence.positions} <= {None}  # the exact rule judges chains
        decision = step.decisions[choice.position]
        if decision.outcome == "rejected":
            way = [step.decisions[place].draft_token for place in branch(step.parents, decision.parent)]
            left = np.exp(model.logits([*context, *way])[0])
            siblings = [
                d.draft_token for d in step.decisions if d.draft_token is not None and d.parent == decision.parent
            ]
            left[siblings] = 0
            left /= left.sum()
            n_several += len(siblings) > 1
            assert {row.token for row in choice.alternatives} >= set(siblings)
            for row in choice.alternatives:
                assert row.residual_prob == pytest.approx(left[row.token], abs=1e-9)
            assert choice.residual_others == pytest.approx(1 - left[[r.token for r in choice.alternatives]].sum())
            assert choice.drawn_from == "target"
        context.extend(step.emitted)
    assert n_several > 10
