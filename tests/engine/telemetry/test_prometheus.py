"""The counters as Prometheus text: what is scraped is what the run itself says."""

import json
import re
import socket
from pathlib import Path
from urllib.request import urlopen

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from engine.build import build
from engine.errors import SettingError
from engine.metrics import measure
from engine.spec import RunSpec
from engine.telemetry.labels import LabelLimit, clean
from engine.telemetry.prometheus import PREFIX, SECONDS_BUCKETS, PrometheusMetrics
from engine.telemetry.server import serve
from engine.values import Decision, Drafted, Finished, Started, Step
from tests.engine.sample_events import sample_events

DOCS = Path(__file__).parents[3] / "docs"


def recorded(*runs, metrics=None):
    metrics = metrics or PrometheusMetrics()
    for events in runs:
        recorder = metrics.recorder()
        for event in events:
            recorder.add(event)
    return metrics


def scraped(text):
    """Name -> list of (labels, value), read by Prometheus' own parser."""
    samples = {}
    for family in text_string_to_metric_families(text.decode() if isinstance(text, bytes) else text):
        for sample in family.samples:
            samples.setdefault(sample.name, []).append((sample.labels, sample.value))
    return samples


def total(samples, name, **labels):
    return sum(value for found, value in samples.get(f"{PREFIX}{name}", []) if labels.items() <= found.items())


def assert_equal_to(samples, figures, **labels):
    assert total(samples, "spec_decode_num_drafts_total", **labels) == figures.drafting_steps
    assert total(samples, "spec_decode_num_draft_tokens_total", **labels) == figures.drafted
    assert total(samples, "spec_decode_num_accepted_tokens_total", **labels) == figures.accepted
    for row in figures.per_position:
        position = {"position": str(row.position - 1)}
        assert total(samples, "spec_decode_num_accepted_tokens_per_pos_total", **labels, **position) == row.accepted
    assert total(samples, "emitted_tokens_total", **labels) == figures.tokens_generated
    assert total(samples, "step_seconds_count", **labels) == figures.steps
    assert total(samples, "step_seconds_sum", **labels) == pytest.approx(figures.decode_seconds, rel=1e-12)
    assert total(samples, "runs_total", **labels) == 1


@pytest.mark.parametrize(
    "settings",
    [
        {"drafter": "model", "draft_length": 6},
        {"drafter": "ngram", "stop": ("token",)},
        {"drafter": "none"},
        {"rule": "naive", "temperature": 0.0},
        {"rule": "tree-match", "draft_length": 3},
        {"target_call_seconds": 0.02, "draft_call_seconds": 0.001},
    ],
)
def test_a_scrape_after_a_run_equals_the_runs_own_counters(settings):
    events = list(build(RunSpec(prompt="The draft", max_tokens=80, seed=5, **settings)).events())
    figures = measure(events)
    samples = scraped(recorded(events).text())
    assert_equal_to(samples, figures)
    positions = {
        labels["position"] for labels, _ in samples.get(f"{PREFIX}spec_decode_num_accepted_tokens_per_pos_total", [])
    }
    assert positions == {str(row.position - 1) for row in figures.per_position}
    assert {labels["simulated"] for labels, _ in samples[f"{PREFIX}emitted_tokens_total"]} == {
        "true" if figures.simulated else "false"
    }


def test_runs_of_one_process_add_up_and_others_stay_apart():
    specs = [RunSpec(prompt="The draft", max_tokens=30, seed=seed, drafter=drafter)
             for drafter, seed in (("none", 1), ("ngram", 2), ("ngram", 3))]  # fmt: skip
    runs = [list(build(spec).events()) for spec in specs]
    samples = scraped(recorded(*runs).text())
    assert total(samples, "emitted_tokens_total") == 90
    assert total(samples, "emitted_tokens_total", drafter="none") == 30
    expected = sum(measure(events).drafted for events in runs[1:])
    assert total(samples, "spec_decode_num_draft_tokens_total") == expected
    assert total(samples, "runs_total", reason="length") == 3


def test_simulated_seconds_are_a_series_of_their_own():
    samples = scraped(recorded(sample_events(simulated=True), sample_events()).text())
    for simulated in ("true", "false"):
        assert_equal_to(samples, measure(sample_events()), simulated=simulated)


def test_a_step_without_a_draft_is_no_draft():
    plain = Step(0, 1, (Decision(0, "plain", target_token=3),), (3,), 0.0, 0.5, 0.0, 0.5)
    samples = scraped(recorded([Started("t", "d", "exact", True, 0, (1,)), plain]).text())
    assert total(samples, "spec_decode_num_drafts_total") == 0
    assert total(samples, "emitted_tokens_total") == 1


def test_a_position_that_nothing_passed_is_there_with_zero():
    decisions = (
        Decision(0, "rejected", 1, 2, False),
        Decision(1, "unreached", 3),
    )
    step = Step(0, 1, decisions, (2,), 0.0, 0.5, 0.0, 0.5)
    samples = scraped(recorded([Started("t", "d", "exact", True, 0, (1,)), step]).text())
    series = samples[f"{PREFIX}spec_decode_num_accepted_tokens_per_pos_total"]
    assert sorted((labels["position"], value) for labels, value in series) == [("0", 0), ("1", 0)]


def test_a_step_falls_into_the_bucket_of_its_seconds():
    events = [Started("t", "d", "exact", True, 0, (1,))]
    events += [
        Step(place, 1, (Decision(0, "plain", target_token=3),), (3,), 0.0, seconds, 0.0, 9.0)
        for place, seconds in enumerate((0.00005, 0.05, 0.3, 99.0))
    ]
    samples = scraped(recorded(events).text())
    bounds = {labels["le"]: value for labels, value in samples[f"{PREFIX}step_seconds_bucket"]}
    assert [bounds[bound] for bound in ("0.0001", "0.02", "0.05", "0.2", "0.5", "10.0", "+Inf")] == [
        1,
        1,
        2,
        2,
        3,
        3,
        4,
    ]
    assert len(bounds) == len(SECONDS_BUCKETS) + 1


def test_runs_are_counted_by_what_ended_them():
    ends = ("length", "error", "error")
    runs = [[next(sample_events()), Finished(reason, (), "", 0.0, 0.0)] for reason in ends]
    samples = scraped(recorded(*runs).text())
    assert [total(samples, "runs_total", reason=reason) for reason in ("length", "error", "cancelled")] == [1, 2, 0]


def test_events_without_a_beginning_are_not_counted():
    recorder = (metrics := PrometheusMetrics()).recorder()
    for event in list(sample_events())[1:]:
        recorder.add(event)
    assert not [name for name in scraped(metrics.text()) if name.startswith(PREFIX)]


def test_nothing_is_registered_globally():
    recorded(sample_events())
    assert not [family for family in REGISTRY.collect() if family.name.startswith(PREFIX)]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("smollm2-135m", "smollm2-135m"),
        ("/home/me/models/tiny.gguf", "tiny.gguf"),
        (r"C:\models\tiny.gguf", "C:tiny.gguf"),
        ("model:/home/me/tiny.gguf", "model:tiny.gguf"),
        ('a "b"\n\0', 'a "b"__'),
        ("", "unnamed"),
        ("é" * 99, "é" * 64),
    ],
)
def test_labels_are_clean_and_short(name, label):
    assert clean(name) == label


def test_an_odd_name_comes_back_from_the_text():
    started = Started('a "b",\\c{d}', "x,y=z", "exact", True, 0, (1,))
    samples = scraped(recorded([started, Finished("length", (), "", 0.0, 0.0)]).text())
    [(labels, _)] = samples[f"{PREFIX}runs_total"]
    assert (labels["target"], labels["drafter"]) == ("c{d}", "x,y=z")


def test_the_number_of_series_has_a_limit():
    limit = LabelLimit(most=3)
    names = {limit.of(Started(f"model-{number}", "none", "exact", True, 0, ())).target for number in range(50)}
    assert names == {"model-0", "model-1", "model-2", "other"}


def test_counters_are_served_over_http_and_no_longer_behind_the_block():
    metrics = recorded(sample_events())
    with serve(metrics, 0) as address:
        assert address.startswith("http://127.0.0.1:")
        with urlopen(address) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain")
            assert scraped(answer.read()) == scraped(metrics.text())
    with pytest.raises(OSError, match="refused"):
        urlopen(address)


def test_a_port_that_is_taken_or_no_port_is_told():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(SettingError, match=rf"127\.0\.0\.1:{port}: another program listens there"):
            serve(PrometheusMetrics(), port).__enter__()
    for port in (-1, 65536):
        with pytest.raises(SettingError, match=f"the metrics port is {port}; give a number"):
            serve(PrometheusMetrics(), port).__enter__()


def names_and_labels():
    samples = scraped(recorded(list(build(RunSpec(prompt="The draft", max_tokens=20)).events())).text())
    names = {name for name in samples if not name.endswith("_created")}
    return names, {label for name in names for labels, _ in samples[name] for label in labels}


def panels():
    return json.loads((DOCS / "grafana.json").read_text(encoding="utf-8"))["panels"]


def test_the_grafana_dashboard_asks_for_what_is_exported():
    names, labels = names_and_labels()
    expressions = [target["expr"] for panel in panels() for target in panel.get("targets", [])]
    asked = {name for text in expressions for name in re.findall(r"draftscope:\w+", text)}
    assert asked <= names
    assert {name for name in names - asked if not name.endswith(("step_seconds_bucket", "step_seconds_sum"))} == set()
    grouped = {label.strip() for text in expressions for inside in re.findall(r"by \(([^)]*)\)", text)
               for label in inside.split(",")}  # fmt: skip
    selected = {label for text in expressions for inside in re.findall(r"\{([^}]*)\}", text)
                for label in re.findall(r"(\w+)=", inside)}  # fmt: skip
    assert grouped | selected <= labels
    assert {"target", "drafter", "rule", "simulated"} <= selected


def test_the_grafana_panels_do_not_overlap_and_have_their_own_ids():
    assert len({panel["id"] for panel in panels()}) == len(panels())
    taken = set()
    for panel in panels():
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells


def test_every_name_and_label_is_explained():
    page = (DOCS / "telemetry.md").read_text(encoding="utf-8")
    names, labels = names_and_labels()
    families = {re.sub(r"_(bucket|sum|count)$", "", name) if "seconds" in name else name for name in names}
    assert {name for name in families | labels if f"`{name}`" not in page} == set()


def test_guesses_alone_count_nothing():
    drafted = Drafted(0, 1, (4,), ("x",), 0.1)
    assert not [name for name in scraped(recorded([next(sample_events()), drafted]).text()) if name.startswith(PREFIX)]
