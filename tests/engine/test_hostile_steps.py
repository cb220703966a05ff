"""Steps of a file that no run could have made: refused on import, before anything indexes or computes with them."""

import io
import json
import math
import re
from copy import deepcopy

import pytest

from engine.build import build
from engine.errors import RunFileError
from engine.event_json import event_from_json
from engine.explain import explain
from engine.export_jsonl import run_jsonl
from engine.import_jsonl import read_runs
from engine.spec import RunSpec
from engine.step_checks import check_step
from engine.stored_run import StoredRun
from engine.values import Decision, Step

SPECS = {
    "exact": RunSpec(prompt="The draft", max_tokens=40, seed=7, probe=5, temperature=1.0, agreement=-0.5),
    "naive": RunSpec(prompt="The draft", max_tokens=40, seed=3, probe=5, rule="naive"),
    "block": RunSpec(prompt="The draft", max_tokens=40, seed=3, probe=5, rule="block", temperature=1.0, agreement=-0.5),
    "tree": RunSpec(prompt="The draft", max_tokens=40, seed=3, probe=5, rule="tree-distinct", temperature=1.0),
    "gumbel": RunSpec(prompt="The draft", max_tokens=40, seed=3, probe=5, rule="gumbel", temperature=1.0),
}
EVENTS = {name: list(build(spec).events()) for name, spec in SPECS.items()}


def lines_of(name="exact"):
    """The lines of a good file as objects."""
    run = StoredRun("a1", "2026-01-31T12:00:00+00:00", "finished", SPECS[name], {}, {})
    return [json.loads(line) for line in run_jsonl(run, EVENTS[name])]


def read(lines):
    return read_runs(io.BytesIO(b"".join(json.dumps(line).encode() + b"\n" for line in lines)), "runs.jsonl")


def first(lines, outcome):
    """The first step with a decision of that outcome, and the decision."""
    for line in lines:
        for decision in line.get("decisions", ()):
            if decision["outcome"] == outcome:
                return line, decision
    raise AssertionError(f"no decision is {outcome}")


def refused(lines, words):
    with pytest.raises(RunFileError, match=words) as told:
        read(lines)
    assert "nothing was imported" in str(told.value)
    assert len(str(told.value)) < 700


@pytest.mark.parametrize("name", SPECS)
def test_what_a_run_makes_is_taken(name):
    [run] = read(lines_of(name))
    assert len(run.steps) == sum(isinstance(event, Step) for event in EVENTS[name])


@pytest.mark.parametrize("position", [-1, 1, 99, 10**18])
def test_positions_count_from_0_within_a_step(position):
    lines = lines_of()
    step, _ = first(lines, "rejected")
    step["decisions"][0]["position"] = position
    refused(lines, f"the position 0 must follow; this is the position {position}")
    lines = lines_of()
    step, _ = first(lines, "unreached")
    step["decisions"] = [*step["decisions"][:-1], step["decisions"][-1] | {"position": 0}]
    refused(lines, "must follow; this is the position 0")


def test_a_step_has_decisions():
    lines = lines_of()
    step, _ = first(lines, "rejected")
    step |= {"decisions": [], "emitted": []}
    refused(lines, "has no decisions")


@pytest.mark.parametrize(
    ("outcome", "changes"),
    [
        ("rejected", {"draft_token": None}),
        ("rejected", {"accepted": True}),
        ("bonus", {"draft_token": 3}),
        ("unreached", {"draft_token": None}),
        ("accepted", {"accepted": False}),
        ("accepted", {"draft_token": None}),
    ],
)
def test_a_decision_has_the_tokens_of_its_outcome(outcome, changes):
    lines = lines_of()
    _, decision = first(lines, outcome)
    decision |= changes
    refused(lines, f"other tokens than the outcome '{outcome}' has")


DECISIONS = {
    "accepted": {"draft_token": 1, "target_token": 1, "accepted": True},
    "rejected": {"draft_token": 1, "target_token": 2},
    "unreached": {"draft_token": 1},
    "bonus": {"target_token": 1},
    "plain": {"target_token": 1},
}


def chain_step(outcomes):
    decisions = tuple(Decision(place, name, **DECISIONS[name]) for place, name in enumerate(outcomes.split()))
    return Step(4, 1, decisions, (), 0.0, 0.5, 0.0, 0.75)


@pytest.mark.parametrize(
    "outcomes",
    ["plain", "rejected", "accepted bonus", "accepted accepted rejected", "rejected unreached unreached"],
)
def test_a_chain_is_judged_in_order(outcomes):
    check_step(chain_step(outcomes))


@pytest.mark.parametrize(
    "outcomes",
    [
        "rejected accepted",
        "unreached bonus",
        "bonus accepted",
        "bonus",
        "accepted",
        "accepted unreached",
        "unreached rejected",
        "accepted plain",
        "plain plain",
        "rejected rejected",
        "rejected bonus",
        "accepted bonus unreached",
        "accepted unreached accepted bonus",
    ],
)
def test_a_chain_that_nobody_could_have_judged_so_is_refused(outcomes):
    named = outcomes.replace(" ", ", ")
    with pytest.raises(RunFileError, match=f"the step 4 has the outcomes {named}; expected accepted ones"):
        check_step(chain_step(outcomes))


def test_a_file_with_a_chain_out_of_order_is_refused():
    lines = lines_of()
    step, decision = first(lines, "unreached")
    decision |= {"outcome": "accepted", "accepted": True, "target_token": decision["draft_token"]}
    step["emitted"].append(decision["draft_token"])
    refused(lines, f"the step {step['index']} has the outcomes .*rejected, .*accepted")


@pytest.mark.parametrize("name", ["draft_prob", "target_prob", "accept_prob", "draw", "emitted_prob"])
@pytest.mark.parametrize("value", [-0.01, 1.01, 1e300, 10**19])
def test_probabilities_of_a_decision_lie_from_0_to_1(name, value):
    lines = lines_of()
    first(lines, "rejected")[1][name] = value
    refused(lines, f"has the {name} .*; expected a number from 0 to 1")


def test_a_character_is_spread_over_one_token_at_least():
    lines = lines_of()
    first(lines, "rejected")[1]["target_parts"] = 0
    refused(lines, "target_parts 0")


@pytest.mark.parametrize("position", [-1, 60, 10**18])
@pytest.mark.parametrize("where", ["choice", "positions"])
def test_evidence_speaks_of_positions_of_its_step(where, position):
    lines = lines_of("naive")
    step, _ = first(lines, "rejected")
    evidence = step["evidence"]
    (evidence["choice"] if where == "choice" else evidence["positions"][0])["position"] = position
    refused(lines, f"speaks of the position {position}; the step has the positions 0 to ")


def test_the_choice_is_where_the_target_gives_its_own_token():
    lines = lines_of()
    step, decision = first(lines, "unreached")
    step["evidence"]["choice"]["position"] = decision["position"]
    refused(lines, "does not give the target's token")


@pytest.mark.parametrize("name", ["target_entropy", "draft_entropy"])
@pytest.mark.parametrize("value", [-1.0, 22.3, 710.0, 1e300])
def test_entropies_are_those_of_some_vocabulary(name, value):
    lines = lines_of()
    first(lines, "rejected")[0]["evidence"]["choice"][name] = value
    refused(lines, re.escape(f"has the {name} {value}; expected a number from 0 to 22.18"))


@pytest.mark.parametrize(
    "name",
    ["drawn_prob", "drawn_below", "draw", "total_variation", "target_others", "draft_others", "residual_others"],
)
def test_masses_of_a_choice_lie_from_0_to_1(name):
    for value in (-0.5, 1.5):
        lines = lines_of()
        first(lines, "rejected")[0]["evidence"]["choice"][name] = value
        refused(lines, f"has the {name} {value}; expected a number from 0 to 1")


@pytest.mark.parametrize("name", ["target_prob", "draft_prob", "residual_prob"])
def test_probabilities_of_alternatives_lie_from_0_to_1(name):
    lines = lines_of()
    first(lines, "rejected")[0]["evidence"]["choice"]["alternatives"][-1][name] = 2
    refused(lines, f"has the {name} 2; expected a number from 0 to 1")


@pytest.mark.parametrize("name", ["accept_prob", "draw"])
def test_what_the_exact_rule_would_have_done_lies_from_0_to_1(name):
    lines = lines_of("naive")
    first(lines, "rejected")[0]["evidence"]["positions"][0]["exact"][name] = 1.5
    refused(lines, f"has the {name} 1.5; expected a number from 0 to 1")


def test_rounding_is_no_offence_and_the_widest_law_can_be_explained():
    lines = lines_of()
    step, _ = first(lines, "rejected")
    step["evidence"]["choice"] |= {"total_variation": 1 + 2e-16, "target_entropy": math.log(2**32)}
    [run] = read(lines)
    assert json.loads(run.steps[step["index"]])["evidence"]["choice"]["total_variation"] > 1
    told = explain(event_from_json(run.steps[step["index"]]))
    assert "4.29e+9 tokens" in " ".join(told["choice"]["words"])


@pytest.mark.parametrize("kind", ["step", "drafted", "finished"])
def test_a_run_begins_with_started(kind):
    lines = lines_of()
    drafted = {"type": "drafted", "index": 0, "context_length": 2, "tokens": [1], "texts": ["a"], "draft_seconds": 0}
    later = {"step": lines[2], "drafted": drafted, "finished": lines[-2]}[kind]
    refused([lines[0], later, *lines[2:]], "the run must begin here, with an object of the type 'started'")


def test_started_behind_steps_is_refused():
    lines = lines_of()
    moved = deepcopy(lines)
    moved.insert(3, moved.pop(1))
    refused(moved, "must begin here")


def test_a_draft_has_a_text_for_every_token():
    lines = lines_of()
    drafted = {"type": "drafted", "index": 0, "context_length": 2, "tokens": [1], "texts": [], "draft_seconds": 0}
    refused([*lines[:2], drafted, *lines[2:]], "1 tokens and 0 texts")


@pytest.mark.parametrize("name", ["draft_seconds", "verify_seconds", "overhead_seconds", "at_seconds", "probe_seconds"])
def test_times_of_a_step_are_not_negative(name):
    lines = lines_of()
    step, _ = first(lines, "rejected")
    step[name] = -0.25
    place = lines.index(step) + 1
    refused(lines, f"runs.jsonl, line {place}: the {name} of the step {step['index']} are -0.25; expected 0 or more")


@pytest.mark.parametrize("name", ["prefill_seconds", "total_seconds"])
def test_times_of_the_end_are_not_negative(name):
    lines = lines_of()
    lines[-2][name] = -1
    refused(lines, f"runs.jsonl, line {len(lines) - 1}: the {name} of the end are -1; expected 0 or more")


def test_the_time_of_a_draft_is_not_negative():
    lines = lines_of()
    drafted = {"type": "drafted", "index": 0, "context_length": 2, "tokens": [1], "texts": ["a"], "draft_seconds": -2}
    refused([*lines[:2], drafted, *lines[2:]], "line 3: the draft_seconds of the step 0 are -2")
