"""The routes, through the real app."""

import warnings
from dataclasses import replace

import pytest

from engine import RunSpec, RunStore, Step, build, measure
from engine.bench.prompts import Prompt
from engine.compare.run import CompareSettings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # starlette's test client warns of the client library it is given
    from starlette.testclient import TestClient

from dashboard.app import app
from dashboard.comparisons import comparisons
from dashboard.runner import registry
from tests.engine.telemetry.test_prometheus import scraped, total

SPEC = RunSpec(prompt="The draft", max_tokens=30)


@pytest.fixture(scope="module")
def client():
    with TestClient(app) as client:
        yield client


def read(client, run_id):
    cursor, entries = 0, []
    while True:
        answer = client.get(f"/draftscope/runs/{run_id}/events?from={cursor}").json()
        entries += answer["entries"]
        cursor = answer["next"]
        if answer["state"] == "finished" and not answer["more"]:
            return entries, answer


def test_a_run_is_read_in_increments(client):
    run = registry.start(SPEC, "tab")
    entries, answer = read(client, run.id)
    assert len(entries) == len(run.log)
    assert answer["figures"]["tokens_generated"] == 30


def test_a_run_that_is_only_in_the_store_reads_the_same(client):
    run = registry.start(SPEC, "tab")
    run.join(10)
    live, _ = read(client, run.id)
    with RunStore().begin(SPEC) as writer:
        for event in build(SPEC).events():
            writer.add(event)
    stored, _ = read(client, writer.run_id)
    assert [entry[2] for entry in stored if entry[0] == "step"] == [entry[2] for entry in live if entry[0] == "step"]


def test_the_figures_of_every_step_are_the_same_live_and_from_the_store(client):
    run = registry.start(SPEC, "tab")
    run.join(10)
    live = client.get(f"/draftscope/runs/{run.id}/figures").json()
    n_steps = RunStore().get(run.id).record["steps"]
    assert len(live["rows"]) == n_steps + 1
    registry._runs.clear()
    assert client.get(f"/draftscope/runs/{run.id}/figures").json() == live
    assert client.get(f"/draftscope/runs/{run.id}/figures?from=2").json()["rows"] == live["rows"][2:]
    assert client.get("/draftscope/runs/nobody/figures").status_code == 404
    assert client.post(f"/draftscope/runs/{run.id}/figures").status_code == 405


def test_an_unknown_run_is_not_found(client):
    answer = client.get("/draftscope/runs/nobody/events")
    assert answer.status_code == 404
    assert "nobody" in answer.json()["error"]


@pytest.mark.parametrize("cursor", ["x", "-1", "", "1e3"])
def test_a_cursor_that_is_no_number_reads_from_the_start(client, cursor):
    run = registry.start(SPEC, "tab")
    run.join(10)
    assert client.get(f"/draftscope/runs/{run.id}/events?from={cursor}").json()["from"] == 0


def test_plotly_is_served_and_may_be_kept(client):
    answer = client.get("/draftscope/plotly.min.js")
    assert answer.status_code == 200
    assert "immutable" in answer.headers["cache-control"]
    assert len(answer.content) > 1_000_000


def test_the_routes_are_read_only(client):
    assert client.post("/draftscope/runs/x/events").status_code == 405


def test_a_run_that_another_process_decodes_is_followed(client):
    events = list(build(SPEC).events())
    with RunStore().begin(SPEC) as writer:
        for event in events[:7]:
            writer.add(event)
        first = client.get(f"/draftscope/runs/{writer.run_id}/events").json()
        assert first["state"] == "running"
        for event in events[7:]:
            writer.add(event)
    entries, last = read(client, writer.run_id)
    assert entries[: len(first["entries"])] == first["entries"]
    assert [entry[1] for entry in entries if entry[0] == "step"] == [e.index for e in events if isinstance(e, Step)]
    assert last["reason"] == "length"


def test_a_run_is_found_by_its_whole_id_only(client):
    run = registry.start(SPEC, "tab")
    run.join(10)
    registry._runs.clear()
    assert client.get(f"/draftscope/runs/{run.id}/events").status_code == 200
    assert client.get(f"/draftscope/runs/{run.id[:5]}/events").status_code == 404


def test_a_store_that_cannot_be_read_is_no_missing_run(client, tmp_path, monkeypatch):
    monkeypatch.setenv("DRAFTSCOPE_HOME", str(tmp_path))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "runs.sqlite").write_text("this is no database, but a text that is long enough to be read")
    answer = client.get("/draftscope/runs/abc/events")
    assert answer.status_code == 503
    assert answer.json()["error"]


def test_a_step_is_explained_from_memory_and_from_the_store(client):
    run = registry.start(replace(SPEC, probe=4), "tab")
    run.join(10)
    live = client.get(f"/draftscope/runs/{run.id}/steps/1").json()
    registry._runs.clear()
    assert client.get(f"/draftscope/runs/{run.id}/steps/1").json() == live
    assert live["step"] == 1
    assert len(live["choice"]["alternatives"]) == 4


@pytest.mark.parametrize(
    ("path", "words"), [("{run}/steps/999", "has no step 1000"), ("nobody/steps/0", "'nobody'")]
)  # words for the page, which counts from 1
def test_a_step_that_is_not_there_is_not_found(client, path, words):
    run = registry.start(SPEC, "tab")
    run.join(10)
    answer = client.get(f"/draftscope/runs/{path.format(run=run.id)}")
    assert answer.status_code == 404
    assert words in answer.json()["error"]


def test_the_counters_of_the_page_grow_by_what_a_run_counts(client):
    before = scraped(client.get("/metrics").text)
    run = registry.start(RunSpec(prompt="The draft", max_tokens=40, drafter="ngram", seed=3), "tab")
    run.join(10)
    answer = client.get("/metrics")
    after = scraped(answer.text)
    figures = measure(RunStore().events(run.id))
    for name, value in (
        ("spec_decode_num_drafts_total", figures.drafting_steps),
        ("spec_decode_num_draft_tokens_total", figures.drafted),
        ("spec_decode_num_accepted_tokens_total", figures.accepted),
        ("spec_decode_num_accepted_tokens_per_pos_total", figures.accepted),
        ("emitted_tokens_total", figures.tokens_generated),
        ("step_seconds_count", figures.steps),
        ("runs_total", 1),
    ):
        assert total(after, name, drafter="ngram") - total(before, name, drafter="ngram") == value, name
    assert answer.headers["content-type"].startswith("text/plain")
    assert client.post("/metrics").status_code == 405


def test_the_lanes_of_a_comparison_are_read_in_increments(client):
    settings = CompareSettings((RunSpec(max_tokens=12),), (Prompt("1", "The draft"),), repeats=1)
    comparison = comparisons.start(settings, "tab")
    comparison.work.join(60)
    address = f"/draftscope/comparisons/{comparison.id}/lanes"
    answer = client.get(address).json()
    assert (answer["state"], answer["done"], answer["total"]) == ("finished", 2, 2)
    lanes = answer["lanes"]
    assert [lane["name"] for lane in lanes] == ["plain", "model 4"]
    at = ",".join(f"{lane['run']}:{lane['log']['next']}" for lane in lanes)
    assert [lane["log"]["entries"] for lane in client.get(f"{address}?at={at}").json()["lanes"]] == [[], []]
    assert client.get(f"{address}?at=x:y,,1:-3").json() == answer


def test_an_unknown_comparison_is_not_found(client):
    assert client.get("/draftscope/comparisons/nobody/lanes").status_code == 404
