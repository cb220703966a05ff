"""A step in plain words: what is said is what the events hold."""

import json
from dataclasses import fields, replace

import pytest

from engine.build import build
from engine.evidence import Alternative, Choice, Evidence, ExactTest, PositionEvidence, Term
from engine.explain import explain, filled, number
from engine.rules import RULES
from engine.spec import RunSpec
from engine.values import Decision, Step

REJECTED = Decision(
    0, "rejected", 5, 7, draft_prob=0.41, target_prob=0.03, accept_prob=0.03 / 0.41, draw=0.52, emitted_prob=0.4,
    draft_text=" a", target_text=" the",
)  # fmt: skip
RATIO = "min(1, {target_prob} / {draft_prob}) = {accept_prob}"
CHOICE = Choice(
    0, "residual", 0.42, 0.55, 0.61, 2.302585092994046, 0.0, 0.75,
    (Alternative(7, " the", 0.4, 0.1, 0.42), Alternative(5, " a", 0.03, 0.41, 0.0), Alternative(9, "x", 0.02, 0, 0.1)),
    0.55, 0.49, 0.48,
)  # fmt: skip


def step(*decisions, evidence=None, note=""):
    return Step(4, 9, decisions, (7,), 0.0, 0.1, 0.0, 0.2, note, evidence, 0.001 if evidence else 0.0)


def test_tested_position_is_told_with_its_formula_filled_in():
    [told] = explain(step(REJECTED))["positions"]
    assert told["formula"] == "min(1, 0.03 / 0.41) = 0.0732"
    assert told["words"] == (
        "The target gives this token 0.03, the draft gave it 0.41; it is kept with probability 0.0732; "
        "the draw was 0.52: rejected."
    )
    assert told["exact"] is None
    assert {field.name for field in fields(Decision)} < set(told)


SIBLINGS = (
    Decision(0, "declined", 5, draft_prob=0.6, target_prob=0.3, accept_prob=0.5, draw=0.7, draft_text=" All",
             parent=-1),
    Decision(1, "rejected", 6, 7, draft_prob=0.24, target_prob=0.0189, accept_prob=0.0, draw=0.1, draft_text=" an",
             target_text=" the", parent=-1),
)  # fmt: skip


@pytest.mark.parametrize("rule", ["tree-independent", "tree-distinct"])
def test_a_guess_behind_a_refused_sibling_is_told_with_what_that_leaves_of_the_target(rule):
    first, second = explain(step(*SIBLINGS), rule=rule)["positions"]
    assert first["words"].startswith("The target gives this token 0.3, the draft gave it 0.6; it is kept with")
    assert second["words"] == (
        "The target gives this token 0.0189, and 0 after the refusal of “ All”; the draft gave it 0.24; "
        "it is kept with probability 0; the draw was 0.1: rejected."
    )
    evidence = Evidence(CHOICE, RULES[rule](RunSpec()).formula, (PositionEvidence(1, (Term("left_prob", 0.06),)),))
    half = replace(SIBLINGS[1], accept_prob=0.25, draw=0.5)
    told = explain(step(SIBLINGS[0], half, evidence=evidence), rule=rule)["positions"][1]
    assert told["formula"] == "min(1, 0.06 / 0.24) = 0.25"
    assert "this token 0.0189, and 0.06 after the refusal of “ All”; the draft gave it 0.24; it is" in told["words"]
    sure = explain(step(SIBLINGS[0], replace(half, outcome="accepted", accept_prob=1.0)), rule=rule)["positions"][1]
    assert "0.0189, and at least 0.24 after the refusal of “ All”; the draft gave it 0.24; it" in sure["words"]


def test_many_refused_siblings_are_counted_and_those_of_other_places_are_not_named():
    others = [replace(SIBLINGS[0], position=place, draft_text=f" {place}") for place in range(4)]
    told = explain(step(*others, replace(SIBLINGS[1], position=4)), rule="tree-distinct")["positions"]
    assert "0.3, and 0.3 after the refusal of “ 0” and “ 1”; the draft" in told[2]["words"]
    assert "0.0189, and 0 after the refusal of 4 others; the draft" in told[4]["words"]
    elsewhere = explain(step(SIBLINGS[0], replace(SIBLINGS[1], parent=0)), rule="tree-distinct")["positions"][1]
    assert "refusal" not in elsewhere["words"]


def test_a_sibling_of_the_target_s_one_draw_is_told_with_the_refusal_that_its_probability_stands_on():
    second = replace(SIBLINGS[1], target_prob=0.35, accept_prob=0.5, draw=None)
    told = explain(step(SIBLINGS[0], second), rule="tree-match")["positions"][1]["words"]
    assert "the same token, which has probability 0.5 after the refusal of “ All”. So it was rejected." in told


def test_draw_and_threshold_never_look_alike_in_words():
    close = Decision(0, "accepted", 5, 5, True, draft_prob=0.5, target_prob=0.25, accept_prob=0.5, draw=0.49999)
    words = explain(step(close))["positions"][0]["words"]
    assert "with probability 0.5; the draw was 0.49999: accepted." in words


def test_deciding_position_is_told_with_its_laws():
    told = explain(step(REJECTED, evidence=Evidence(CHOICE, RATIO)))["choice"]
    assert told["words"] == [
        "The replacement “ the” was drawn from the residual, which is what the target gives beyond the draft: it has "
        "0.42 there, the stretch from 0.55 to 0.97 of the line from 0 to 1, and the number drawn was 0.61.",
        "The laws of draft and target are 0.75 apart (total variation), and a guess drawn from this draft is rejected "
        "here with just that probability.",
        "The target's entropy is 2.3 nats (as open as an even choice among 10 tokens), the draft's 0.",
    ]
    assert [(row["guess"], row["taken"]) for row in told["alternatives"]] == [
        (False, True),
        (True, False),
        (False,) * 2,
    ]
    assert told["total_variation"] == 0.75


@pytest.mark.parametrize(
    ("entropy", "words"),
    [
        (0.0, "is 0 nats,"),
        (1e-9, "(all but certain)"),
        (0.0004, "(all but certain)"),
        (0.002, "(as open as an even choice among 1.002 tokens)"),
        (0.0049, "(as open as an even choice among 1.005 tokens)"),
        (0.005, "(as open as an even choice among 1.01 tokens)"),
    ],
)
def test_an_entropy_close_to_0_is_no_choice_among_1_tokens(entropy, words):
    told = explain(step(REJECTED, evidence=Evidence(replace(CHOICE, target_entropy=entropy), RATIO)))["choice"]
    assert words in told["words"][-1]
    assert " 1 tokens" not in told["words"][-1]


def test_step_without_evidence_holds_what_its_decisions_do():
    told = explain(step(REJECTED, Decision(1, "unreached", 6, draft_text="b")))
    assert (told["step"], told["choice"], told["probe_seconds"]) == (4, None, 0.0)
    assert told["positions"][0]["formula"] == "min(1, 0.03 / 0.41) = 0.0732"
    assert "nobody judged it" in told["positions"][1]["words"]
    naive = explain(
        step(Decision(0, "accepted", 5, 5, True, draft_prob=1.0, target_prob=0.3, accept_prob=1.0)), rule="naive"
    )
    assert naive["positions"][0]["formula"] == ""
    assert naive["positions"][0]["words"].endswith("The rule draws no number. So it was accepted.")


@pytest.mark.parametrize(
    ("exact", "words"),
    [
        (ExactTest(0.3, 0.2, True, 5, " a"), "0.2, so it would too have kept it."),
        (ExactTest(0.3, 0.7, False, 8, " b"), "0.7, so it would have rejected it and put “ b” in its place."),
    ],
)
def test_naive_rule_is_told_beside_the_exact_one(exact, words):
    kept = Decision(0, "accepted", 5, 5, True, draft_prob=1.0, target_prob=0.3, accept_prob=1.0)
    terms = tuple(
        Term(name, value)
        for name, value in (("draft_logit", -1.0), ("target_logit", -1.6), ("quotient", 1.822),
                            ("acceptance_probability", 0.1), ("threshold", 1 / 0.9))
    )  # fmt: skip
    from engine.acceptance import NaiveThreshold

    evidence = Evidence(CHOICE, NaiveThreshold.formula, (PositionEvidence(0, terms, exact),))
    [told] = explain(step(kept, evidence=evidence), rule="naive")["positions"]
    assert told["formula"] == "exp(-1 - (-1.6)) = 1.82, and more than 1 / (1 - 0.1) = 1.11 is asked for"
    assert f"{told['formula']}. So it was accepted. The exact rule keeps it with probability 0.3;" in told["words"]
    assert told["words"].endswith(words)
    assert told["exact"]["formula"] == "min(1, 0.3 / 1) = 0.3"


def test_greedy_choice_is_told_by_its_logits():
    choice = Choice(0, "residual", 1.0, 0.0, 0.3, 0.0, 0.0, 1.0, (Alternative(7, "x", 1.0, 0.0, 1.0, 9.5),), 0.0)
    decision = Decision(0, "rejected", 5, 7, draft_prob=1.0, target_prob=0.0, accept_prob=0.0, draw=0.3, margin=0.25,
                        target_text="x")  # fmt: skip
    told = explain(step(decision, evidence=Evidence(choice, RATIO)))["choice"]["words"]
    assert told == [
        "At temperature 0 the target takes its most probable token: “x”, whose logit leads the next best one by 0.25.",
        "At temperature 0 each law is all on one token, draft and target on different ones: "
        "they are 1 apart, without entropy.",
    ]


@pytest.mark.parametrize("settings", [{}, {"rule": "naive"}, {"temperature": 0.0}, {"drafter": "none"}, {"probe": 0}])
def test_every_step_of_a_run_is_told_as_plain_data(settings):
    spec = RunSpec(**{"prompt": "The draft", "max_tokens": 40, "probe": 8} | settings)
    for event in build(spec).events():
        if isinstance(event, Step):
            told = explain(event, rule=spec.rule)
            assert json.loads(json.dumps(told, allow_nan=False))["step"] == event.index
            assert all(position["words"] for position in told["positions"])
            assert (told["choice"] is None) == (spec.probe == 0)


@pytest.mark.parametrize("rule", [*RULES, "a rule of one's own"])
def test_numbers_that_are_missing_are_not_made_up(rule):
    """A file may hold any; what no rule here writes is told, too."""
    told = explain(
        step(
            Decision(0, "accepted", 5, 5, True, draft_prob=0.5, target_prob=0.3, accept_prob=0.6, draft_text="a"),
            Decision(1, "rejected", 5, 7, draft_text="a", target_text="b"),
            Decision(2, "unreached", 6, accept_prob=0.5, draft_text="c"),
            Decision(3, "unreached", 6, draft_prob=0.1, target_prob=0.2, accept_prob=0.5, draw=0.7, draft_text="d"),
        ),
        rule=rule,
    )["positions"]
    assert told[0]["words"].endswith("So it was accepted.")
    assert told[1]["words"] == ""
    assert told[2]["words"].endswith("whatever its own test said.")
    ending = "all before it would have been kept." if rule == "block" else "whatever its own test said."
    assert told[3]["words"].endswith(ending)


@pytest.mark.parametrize("value", [0.999999, 1 - 2**-53, 1e-300, 5e-324])
def test_what_is_not_0_or_1_never_looks_so(value):
    assert number(value) not in ("0", "1")


def test_formula_with_an_unknown_name_is_not_shown():
    assert filled("{quotient} > 1", {"draw": 0.5}) == ""
    assert filled("", {}) == ""
