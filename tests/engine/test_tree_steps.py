"""Steps whose draft is a tree, as they are exported, read back, told in a terminal and explained."""

import json

import numpy as np
import pytest

from engine.build import build
from engine.cli.explain import explained
from engine.cli.paint import painted
from engine.decode import decode
from engine.drafters import NoDraft
from engine.errors import RunFileError
from engine.event_json import event_to_json
from engine.explain import explain
from engine.export import tokens_csv
from engine.models.markov import load_markov
from engine.spec import RunSpec
from engine.step_checks import check_guess, check_step
from engine.tree import branch, children, depths, leaves
from engine.values import Decision, Draft, Drafted, Step
from tests.engine.tree_runs import PROMPTS, one_step, random_run, steps_of, tree


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
