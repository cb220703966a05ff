"""Which runs are shown, and in which order."""

from datetime import date

import pytest

from engine.history import SORTS, RunFilter, sort_runs
from engine.spec import RunSpec
from engine.stored_run import StoredRun


def run(run_id, day=1, *, tags=(), note="", figures=(), **settings):
    spec = RunSpec(**{"prompt": "The draft"} | settings)
    return StoredRun(run_id, f"2026-11-{day:02}T23:59:59+00:00", "finished", spec, {}, dict(figures), tags, note)


RUNS = [
    run("a1", 1, target="markov", drafter="none", tags=("Baseline", "long")),
    run("b2", 2, target="smollm2-135m", drafter="ngram", note="after the Update", figures={"acceptance_rate": 0.25}),
    run("c3", 3, rule="naive", prompt="Rejected tokens\nand more", figures={"acceptance_rate": 0.75}),
    run("d4", 4, drafter="ngram", tags=("baseline",), figures={"acceptance_rate": None}),
]


@pytest.mark.parametrize(
    ("chosen", "ids"),
    [
        ({}, "a1 b2 c3 d4"),
        ({"targets": ("smollm2-135m",)}, "b2"),
        ({"drafters": ("none", "ngram")}, "a1 b2 d4"),
        ({"rules": ("naive",)}, "c3"),
        ({"rules": ("exact",), "drafters": ("ngram",), "targets": ("markov",)}, "d4"),
        ({"tags": ("baseline",)}, "a1 d4"),
        ({"tags": ("BASELINE", "long")}, "a1"),
        ({"tags": ("base",)}, ""),
        ({"since": date(2026, 11, 2)}, "b2 c3 d4"),
        ({"until": date(2026, 11, 2)}, "a1 b2"),
        ({"since": date(2026, 11, 2), "until": date(2026, 11, 3)}, "b2 c3"),
        ({"words": "rejected more"}, "c3"),
        ({"words": "UPDATE"}, "b2"),
        ({"words": "long"}, "a1"),
        ({"words": "d4"}, "d4"),
        ({"words": "[(no such.*"}, ""),
        ({"words": "  "}, "a1 b2 c3 d4"),
    ],
)
def test_what_passes_a_filter(chosen, ids):
    assert [run.id for run in RUNS if RunFilter(**chosen).keeps(run)] == ids.split()


@pytest.mark.parametrize(
    ("by", "rising", "ids"),
    [
        ("date", False, "d4 c3 b2 a1"),
        ("date", True, "a1 b2 c3 d4"),
        ("acceptance rate", False, "c3 b2 a1 d4"),
        ("acceptance rate", True, "b2 c3 a1 d4"),
        ("target", True, "a1 c3 d4 b2"),
        ("drafter", False, "a1 b2 d4 c3"),
    ],
)
def test_the_order_of_runs(by, rising, ids):
    assert [run.id for run in sort_runs(RUNS, by, rising=rising)] == ids.split()


@pytest.mark.parametrize("by", SORTS)
def test_every_order_can_deal_with_runs_without_figures(by):
    assert len(sort_runs(RUNS, by)) == len(RUNS)
