"""`python -m engine lab`: what it prints, and what it says to bad input."""

import csv
import json

import pytest

from engine.build import build
from engine.cli.main import main
from engine.lab.cases import CASES, CHAIN_RULES
from engine.rules import RULES
from engine.spec import RunSpec
from engine.store import RunStore


def test_lossless_tells_figures_and_tables(capsys):
    assert main(["lab", "lossless", "--target", ".5", ".3", ".2", "--draft", ".3", ".3", ".4", "--draft-length", "3",
                 "--rule", "block"]) == 0  # fmt: skip
    told = capsys.readouterr().out
    assert told.startswith("Lossless: ")
    assert "Accepted a step: 2.0740 (expected, of 3 drafted)" in told
    assert "Acceptance by position" in told


@pytest.mark.parametrize("command", [["lab", "lossless"], ["run", "--prompt", "The draft"]], ids=" ".join)
def test_a_lenience_too_small_to_compute_with_is_refused_in_a_sentence(capsys, command):
    assert main([*command, "--rule", "lenience", "--lenience", "1e-323"]) == 2
    assert "lenience is 1e-323; it must be from 0.000001 to 1" in capsys.readouterr().err


def test_a_parameter_of_the_rule_is_taken(capsys):
    command = [
        "lab",
        "lossless",
        "--target",
        ".5",
        ".3",
        ".2",
        "--draft",
        ".2",
        ".3",
        ".5",
        "--rule",
        "lenience",
        "--json",
    ]
    distances = []
    for lenience in ("1", "0.5"):
        assert main([*command, "--lenience", lenience]) == 0
        distances.append(json.loads(capsys.readouterr().out)["distance_first"])
    assert distances == [0.0, pytest.approx(0.2)]


def test_worked_cases_are_named_and_shown(capsys):
    assert main(["lab", "lossless", "--cases"]) == 0
    listed = capsys.readouterr().out
    assert all(case.title in listed for case in CASES)
    assert main(["lab", "lossless", "--case", "2"]) == 0
    told = capsys.readouterr().out
    assert told.startswith(CASES[1].title)
    assert "Distance, first token: 0.3333" in told


def test_trace_judges_given_settings_by_every_rule(capsys, tmp_path):
    file = tmp_path / "trace.csv"
    assert main(["lab", "trace", "--prompt", "The draft model", "--max-tokens", "8", "--csv", str(file)]) == 0
    told = capsys.readouterr().out
    assert all(rule in told for rule in CHAIN_RULES)
    assert "exact (the run's)" in told
    assert "sample-match, typical, naive: want the draft's most probable tokens" in told
    left_out = ", ".join(rule for rule in RULES if rule not in CHAIN_RULES)
    assert f"\n{left_out}: left out, for they judge trees, and on a chain" in told
    with file.open(newline="") as lines:
        assert {row["rule"] for row in csv.DictReader(lines)} == set(CHAIN_RULES)


def test_trace_judges_a_saved_run(capsys):
    spec = RunSpec(prompt="The draft model", max_tokens=8)
    with RunStore().begin(spec) as writer:
        for event in build(spec).events():
            writer.add(event)
    assert main(["lab", "trace", writer.run_id[:8], "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["tokens"], found["rule"]) == (8, "exact")


def test_check_tells_its_sentence_and_the_counts(capsys):
    command = ["lab", "check", "--prompt", "The draft model", "--runs", "200", "--temperature", "1"]
    assert main(command) == 0
    told = capsys.readouterr().out
    assert told.startswith("No sign of a difference: p = ")
    assert "200 runs, " in told
    assert "all others" in told
    assert main([*command, "--rule", "naive", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["conclusion"] == "differs"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lossless", "--target", "1", "-1"], "none may be negative"),
        (["lossless", "--target", "1", "1", "1", "--draft", "1", "1"], "both need the same"),
        (["lossless", "--rule", "best"], "the rule is 'best'; choose exact"),
        (["lossless", "--case", "99"], "there are cases 1 to"),
        (["lossless", "--draft-length", "9"], "goes up to 3"),
        (["lossless", "--proposal", "guessed"], "choose one of"),
        (["trace"], "there is nothing to judge"),
        (["trace", "--prompt", "The", "--json", "--csv", "-"], "both want standard output"),
        (
            ["trace", "abc", "--rule", "naive", "--stop", "x", "--no-chat"],
            "and --rule, --stop, --chat came with its id",
        ),
        (["trace", "abc", "--prompt-file", "-"], "and --prompt-file came with its id"),
        (["trace", "nosuchrun"], "there is no run 'nosuchrun'"),
        (["check", "--prompt", "The", "--runs", "0"], "takes 1 to"),
        (["check", "--prompt", "The", "--rule", "best"], "the rule is 'best'"),
    ],
)
def test_bad_input_is_told_in_a_sentence(arguments, words, capsys):
    assert main(["lab", *arguments]) == 2
    told = capsys.readouterr().err
    assert told.startswith("error: ")
    assert words in told
