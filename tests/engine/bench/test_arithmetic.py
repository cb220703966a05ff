"""The comparison of arithmetics: what is timed, in turns, and the distances beside their bounds."""

import json

import pytest

from engine.bench.arithmetic import compare_arithmetics
from engine.cli.main import main
from engine.sampling.integer import error_bound


def test_every_arithmetic_is_timed_on_every_size_and_kind_of_row():
    ticks, told = iter(range(10**6)), []
    rows = compare_arithmetics(3, sizes=[10, 200], progress=lambda *done: told.append(done), clock=lambda: next(ticks))
    assert [(row.arithmetic, row.scores, row.n_scores) for row in rows] == [
        (arithmetic, scores, size)
        for size in (10, 200)
        for arithmetic in ("float", "integer")
        for scores in ("float32", "float64")
    ]
    assert {(row.law_seconds, row.log_probability_seconds) for row in rows} == {(1, 1)}
    assert told == [(done, 6) for done in range(1, 7)]


def test_distances_are_within_their_bounds():
    for row in compare_arithmetics(1, sizes=[300, 5000]):
        if row.arithmetic == "integer":
            assert row.bound == error_bound(row.n_scores)
            assert 1e-6 < row.total_variation < row.bound
        else:
            assert row.bound is None
            assert row.total_variation < 1e-6


def test_the_command_prints_a_table_or_json(capsys):
    assert main(["arithmetic", "--repeats", "1"]) == 0
    text = capsys.readouterr().out
    assert len(text.splitlines()) == 13
    assert "151,936" in text
    assert main(["arithmetic", "--repeats", "1", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 12


@pytest.mark.parametrize("repeats", ["0", "-3"])
def test_no_turn_is_refused(repeats, capsys):
    assert main(["arithmetic", "--repeats", repeats]) == 2
    assert f"repeats is {repeats}; it must be at least 1" in capsys.readouterr().err
