"""CSV of real runs, read as a user reads it: the identities hold in it, pandas has the same frames, nothing runs."""

import io
from dataclasses import fields

import pandas as pd
import pytest

from engine.build import build
from engine.csv_text import FORMULA_STARTS, safe_text, to_bytes
from engine.export import runs_csv, steps_csv, tokens_csv
from engine.metrics import Figures
from engine.spec import RunSpec
from engine.values import Decision, Step
from tests.engine.kept_runs import write

SETTINGS = [
    {"drafter": "model", "draft_length": 6},
    {"drafter": "model", "temperature": 0.0},
    {"drafter": "ngram"},
    {"drafter": "none"},
    {"logprobs": True, "repetition_penalty": 1.3, "presence_penalty": -0.2, "min_p": 0.05, "arithmetic": "integer"},
    {"rule": "naive", "acceptance_probability": 0.5},
    {"draft_length": 8, "stop": ("token",)},
    {"draft_length": 8, "stop": (" the", "."), "seed": 4},
    {"target": "noisy", "drafter": "model", "temperature": 1.3},
    {"target_call_seconds": 0.02, "draft_call_seconds": 0.001},
    {"max_tokens": 1},
]


@pytest.fixture(scope="module", params=SETTINGS, ids=str)
def exported(request, tmp_path_factory):
    """A kept run, its events, and its three tables in pandas."""
    from engine.store import RunStore

    store = RunStore(tmp_path_factory.mktemp("exported") / "runs.sqlite")
    spec = RunSpec(**{"prompt": "The draft", "max_tokens": 70, "seed": 3} | request.param)
    run_id = write(store, build(spec).events(), spec)
    tables = (
        runs_csv([store.get(run_id)]),
        steps_csv(run_id, store.events(run_id)),
        tokens_csv(run_id, store.events(run_id)),
    )
    return store.get(run_id), list(store.events(run_id)), *map(read, tables)


def read(lines):
    """As `docs/csv.md` advises."""
    return pd.read_csv(
        io.BytesIO(to_bytes(lines)),
        keep_default_na=False,
        na_values=[""],
        dtype=dict.fromkeys(["draft_text", "target_text", "note", "prompt", "text", "run_id"], str),
    )


def test_identities_hold_in_the_runs(exported):
    _, _, runs, _, _ = exported
    [run] = runs.to_dict("records")
    assert (
        run["tokens_generated"] + run["discarded"] == run["accepted"] + run["recovered"] + run["bonus"] + run["plain"]
    )
    assert run["accepted"] + run["rejected"] + run["unreached"] == run["drafted"]
    assert run["recovered"] == run["rejected"]
    assert run["steps"] == run["recovered"] + run["bonus"] + run["plain"]
    histogram = pd.Series(pd.read_json(io.StringIO(run["accepted_length_histogram"]), typ="series"), dtype=int)
    assert histogram.sum() == run["drafting_steps"]
    assert (histogram * histogram.index).sum() == run["accepted"]
    positions = pd.read_json(io.StringIO(run["per_position"]))
    if len(positions):
        assert positions["drafted"].sum() == run["drafted"]
        assert positions["tested"].sum() == run["accepted"] + run["rejected"]
        assert positions["accepted"].sum() == run["accepted"]
    assert run["identities_ok"]


def test_identities_hold_in_every_step(exported):
    _, _, _, steps, _ = exported
    kept = steps["accepted"] + steps["recovered"] + steps["bonus"] + steps["plain"]
    assert (steps["emitted"] + steps["discarded"] == kept).all()
    assert (steps["accepted"] + steps["rejected"] + steps["unreached"] == steps["drafted"]).all()
    assert (steps["recovered"] == steps["rejected"]).all()
    assert (steps["recovered"] + steps["bonus"] + steps["plain"] == 1).all()
    assert (steps["context_length"].diff().dropna() == steps["emitted"].shift().dropna()).all()


def test_steps_add_up_to_the_run(exported):
    _, _, runs, steps, _ = exported
    [run] = runs.to_dict("records")
    for name in ("drafted", "accepted", "rejected", "unreached", "recovered", "bonus", "plain", "discarded"):
        assert steps[name].sum() == run[name], name
    assert steps["emitted"].sum() == run["tokens_generated"]
    assert len(steps) == run["steps"]
    for name in ("draft_seconds", "verify_seconds", "overhead_seconds"):
        assert steps[name].sum() == pytest.approx(run[name], rel=1e-9), name


def test_tokens_add_up_to_their_steps(exported):
    _, _, _, steps, tokens = exported
    by_step = tokens.groupby("step")
    counts = pd.DataFrame(
        {
            outcome: by_step["outcome"].apply(lambda outcomes, outcome=outcome: (outcomes == outcome).sum())
            for outcome in ("accepted", "rejected", "unreached", "bonus", "plain")
        }
    )
    counts["discarded"] = by_step["discarded"].sum()
    counts["drafted"] = by_step["draft_token"].count()
    counts["emitted"] = by_step["target_token"].count() - counts["discarded"]
    for name in counts:
        assert counts[name].tolist() == steps[name].tolist(), name
    assert (tokens["accepted"] == (tokens["outcome"] == "accepted")).all()


def test_the_emitted_ids_are_in_the_tokens(exported):
    run, _, _, _, tokens = exported
    emitted = tokens[tokens["target_token"].notna() & ~tokens["discarded"]]
    assert emitted["target_token"].astype(int).tolist() == run.record["ids"]


def test_pandas_has_the_frames_that_the_events_make(exported):
    run, events, _, steps, tokens = exported
    found = [event for event in events if isinstance(event, Step)]
    names = [field.name for field in fields(Decision)]
    rows = [[step.index, *(getattr(d, name) for name in names)] for step in found for d in step.decisions]
    expected = pd.DataFrame(rows, columns=["step", *names])
    for name in ("draft_text", "target_text"):
        expected[name] = [safe_text(text) if text else None for text in expected[name]]
    assert (tokens["run_id"] == run.id).all()
    assert_same(tokens[["step", *names]], expected)
    names = ["context_length", "draft_seconds", "verify_seconds", "overhead_seconds", "at_seconds"]
    assert_same(steps[names], pd.DataFrame([[getattr(step, name) for name in names] for step in found], columns=names))


def assert_same(left, right):
    """Every value, a float to fifteen digits: pandas may round the last. An empty column may be of any kind."""
    assert list(left.columns) == list(right.columns)
    for name in left:
        ours, theirs = ([None if pd.isna(value) else value for value in frame[name]] for frame in (left, right))
        for here, there in zip(ours, theirs, strict=True):
            assert here == (pytest.approx(there, rel=1e-15, abs=0) if isinstance(there, float) else there), name


def test_pandas_has_the_figures_of_the_record(exported):
    run, _, runs, _, _ = exported
    for field in fields(Figures):
        value, shown = run.record[field.name], runs[field.name].iloc[0]
        if isinstance(value, (bool, int, float)):
            assert shown == pytest.approx(value, rel=1e-15), field.name
        elif value is None or value == "":
            assert pd.isna(shown), field.name


def test_no_text_in_it_can_run(exported):
    _, _, *tables = exported
    for table in tables:
        texts = table.select_dtypes(exclude=["number", "bool"]).stack()
        assert not [text for text in texts if isinstance(text, str) and text.lstrip()[:1] in FORMULA_STARTS]
