"""The evidence of every rule in a run: its formula holds with its numbers, and its words say what was done."""

import math

import pytest

from engine.acceptance import ExactRejection
from engine.build import build
from engine.evidence import MOST_ALTERNATIVES
from engine.explain import explain
from engine.gumbels import SharedGumbels
from engine.rules import RULES
from engine.sampling import Noise, Purpose
from engine.spec import RunSpec
from engine.step_checks import check_step
from engine.values import Step

SETTINGS = {"prompt": "The draft model", "max_tokens": 120, "seed": 4, "temperature": 1.0, "agreement": 0.2}
OTHERS = [rule for rule in RULES if rule not in ("exact", "naive")]


def steps_of(rule, **settings):
    spec = RunSpec(rule=rule, probe=MOST_ALTERNATIVES, **{**SETTINGS, **settings})
    return [event for event in build(spec).events() if isinstance(event, Step)]


def judged_positions(steps):
    """Every tested position: its decision, and its terms by name."""
    for step in steps:
        terms = {found.position: {term.name: term.value for term in found.terms} for found in step.evidence.positions}
        for decision in step.decisions:
            if decision.accept_prob is not None:
                yield decision, terms.get(decision.position, {})


@pytest.mark.parametrize("rule", OTHERS)
@pytest.mark.parametrize("settings", [{}, {"temperature": 0.0}, {"drafter": "ngram"}], ids=str)
def test_every_step_is_told_and_could_have_come_from_a_run(rule, settings):
    for step in steps_of(rule, **settings):
        check_step(step)
        told = explain(step, rule=rule)
        assert all(position["words"] for position in told["positions"])
        assert all("n/a" not in position["words"] for position in told["positions"])
        assert "does not say" not in told["choice"]["words"][0]


@pytest.mark.parametrize("rule", OTHERS)
def test_what_the_exact_rule_would_do_is_told_where_it_was_reached(rule):
    for step in steps_of(rule):
        tested = {decision.position for decision in step.decisions if decision.outcome in ("accepted", "rejected")}
        if any(decision.parent is not None for decision in step.decisions):
            tested = set()  # a tree; the exact rule judges chains
        assert {found.position for found in step.evidence.positions if found.exact} == tested


@pytest.mark.parametrize(
    ("rule", "left_side"),
    [
        ("block", lambda d, t: t["left"] / (t["left"] + 1 - t["joint_ratio"])),
        ("lenience", lambda d, t: min(1.0, d.target_prob / (t["lenience"] * d.draft_prob))),
        (
            "ensemble",
            lambda d, t: min(1.0, (t["weight"] * d.target_prob + t["rest"] * d.draft_prob) / d.draft_prob),
        ),
    ],
    ids=["block", "lenience", "ensemble"],
)
def test_formula_gives_the_acceptance_probability(rule, left_side):
    n_checked = 0
    for decision, terms in judged_positions(steps_of(rule)):
        if terms:
            assert left_side(decision, terms) == pytest.approx(decision.accept_prob, abs=1e-12)
            n_checked += 1
    assert n_checked > 50


def test_draw_decides_token_by_token_for_lenience_and_ensemble():
    for rule in ("lenience", "ensemble"):
        for decision, _ in judged_positions(steps_of(rule)):
            assert decision.accepted == (decision.draw < decision.accept_prob)


def test_last_draw_that_passes_decides_for_block():
    in_spite, behind = 0, 0
    for step in steps_of("block", draft_length=6, agreement=-0.2):
        tested = [decision for decision in step.decisions if decision.draft_token is not None]
        assert all(decision.accept_prob is not None for decision in tested)  # unreached ones, too
        passed = [decision.position + 1 for decision in tested if decision.draw < decision.accept_prob]
        assert step.n_accepted == max(passed, default=0)
        told = explain(step, rule="block")["positions"]
        for decision in tested:
            words = told[decision.position]["words"]
            fails = decision.draw >= decision.accept_prob
            if decision.accepted and fails:
                in_spite += 1
                assert "It fails, but a token behind it passes" in words
            elif decision.outcome == "unreached":
                behind += 1
                assert "It fails too; had it passed" in words
            elif decision.outcome == "rejected":
                assert "It fails, and so does every token behind it: rejected." in words
            else:
                assert "It passes, and with a token that passes all before it are kept: accepted." in words
    assert in_spite > 0
    assert behind > 0


def test_replacement_of_block_comes_from_the_weighted_residual():
    """max(0, ratio * target - draft) / left, at every alternative; left and ratio are terms of the token before."""
    n_checked = 0
    for step in steps_of("block"):
        choice = step.evidence.choice
        if choice.draft_entropy is None:
            assert choice.drawn_from == "target"
            continue
        assert choice.drawn_from == "weighted residual"
        terms = {found.position: {term.name: term.value for term in found.terms} for found in step.evidence.positions}
        before = terms.get(choice.position - 1, {})
        ratio, left = before.get("joint_ratio", 1.0), before.get("left", choice.total_variation)
        for row in choice.alternatives:
            expected = max(0.0, ratio * row.target_prob - row.draft_prob) / left
            assert row.residual_prob == pytest.approx(expected, abs=1e-9)
        assert choice.drawn_below <= choice.draw <= choice.drawn_below + choice.drawn_prob
        words = explain(step, rule="block")["choice"]["words"]
        assert "what is left of the target beyond the draft, the target's law weighted with the ratio" in words[0]
        assert "with just that probability" not in words[1]
        n_checked += ratio < 1
    assert n_checked > 0


def test_guess_of_sample_match_is_kept_where_the_number_falls_into_its_stretch():
    n_checked = 0
    for step in steps_of("sample-match"):
        for decision, terms in judged_positions([step]):
            number = Noise(4).uniform(step.context_length + decision.position, Purpose.TARGET)
            assert terms["number"] == number
            assert terms["high"] - terms["low"] == pytest.approx(decision.accept_prob, abs=1e-12)
            assert decision.accepted == (terms["low"] <= number < terms["high"])
            words = explain(step, rule="sample-match")["positions"][decision.position]["words"]
            assert "The target draws first, and the guess is kept if it is the same token" in words
            assert f"So it was {decision.outcome}." in words
            n_checked += 1
    assert n_checked > 50


def test_winner_of_the_coupled_rule_is_told():
    n_checked = 0
    for step in steps_of("gumbel"):
        for decision, terms in judged_positions([step]):
            score = math.log(decision.target_prob) + terms["gumbel"] if decision.target_prob else None
            assert terms["score"] == (score if score is None else pytest.approx(score))
            assert decision.accepted == (terms["score"] == terms["largest"])
            gumbel = SharedGumbels(4).gumbel(decision.draft_token, step.context_length + decision.position)
            assert terms["gumbel"] == gumbel
            n_checked += 1
        choice = step.evidence.choice
        assert (choice.drawn_from, choice.draw, choice.drawn_below) == ("target", None, None)
        assert choice.drawn_prob == step.decisions[choice.position].emitted_prob
        words = explain(step, rule="gumbel")["choice"]["words"][0]
        assert "of all tokens the largest sum of the logarithm of that and the Gumbel number" in words
    assert n_checked > 50


def test_typical_acceptance_tells_what_it_asked_for():
    for decision, terms in judged_positions(steps_of("typical")):
        assert terms["asked_for"] == min(0.09, 0.3 * math.exp(-terms["entropy"]))
        assert decision.accepted == (decision.target_prob > terms["asked_for"])
        assert decision.draw is None


def test_words_are_true_without_a_probe():
    for rule in OTHERS:
        spec = RunSpec(rule=rule, **SETTINGS)
        for step in build(spec).events():
            if isinstance(step, Step):
                for told in explain(step, rule=rule)["positions"]:
                    assert told["words"]
                    assert told["formula"] == ""


def test_only_the_exact_rule_is_said_to_refuse_with_the_total_variation():
    for rule in ("exact", "lenience", "ensemble"):
        said = [
            "with just that probability" in " ".join(explain(step, rule=rule)["choice"]["words"])
            for step in steps_of(rule)
        ]
        assert any(said) == (rule == ExactRejection.name)
