"""Whole comparisons on the embedded pair: with simulated prices every ratio follows from counts, exactly."""

import csv
import io
import json

import pytest

from engine.bench.prompts import Prompt
from engine.cli.table import table
from engine.compare import run as run_module
from engine.compare.export import comparison_csv, comparison_runs_csv
from engine.compare.report import text_report
from engine.compare.run import CompareSettings, costs_of, run_comparison
from engine.errors import ModelNotFound, PromptError, SettingError
from engine.metrics import measure
from engine.stopping import Stopped
from engine.values import Finished, Started


def rows_of(result):
    return {row["name"]: row for row in result["configurations"]}


def test_a_draft_that_agrees_helps(settings):
    row = rows_of(run_comparison(settings(agreement=1.0)))["model 4"]
    assert row["verdict"] == "helps"
    assert row["sentence"].startswith("helps: 3.")
    assert "the draft costs 10 % of a target call and 100 % of its tokens are kept" in row["sentence"]


def test_a_draft_that_never_agrees_hurts(settings):
    row = rows_of(run_comparison(settings(agreement=-1.0)))["model 4"]
    assert row["verdict"] == "hurts"
    assert "drafting" in row["sentence"]
    assert "only 1.0 tokens come out of each" in row["sentence"]


def test_every_figure_follows_from_the_calls_that_were_made(settings):
    result = run_comparison(settings({}, {"drafter": "ngram", "draft_length": 2}))
    assert result["simulated"]
    for name in ("model 4", "ngram 2"):
        row = rows_of(result)[name]
        draft_seconds = 0.002 * row["drafted"] if name == "model 4" else 0.0
        seconds = 0.02 * row["steps"] + draft_seconds
        prefill = 0.02 + (0.002 if name == "model 4" else 0.0)
        assert row["speed_up"]["value"] == pytest.approx(0.02 * row["tokens"] / seconds)
        runs = row["runs"]
        assert row["speed_up_with_prefill"]["value"] == pytest.approx(
            0.02 * (row["tokens"] + runs) / (seconds + prefill * runs)
        )
        assert row["draft_seconds_per_token"] == pytest.approx(draft_seconds / row["tokens"])
        assert row["verify_seconds_per_token"] == pytest.approx(0.02 * row["steps"] / row["tokens"])
        assert row["overhead_seconds_per_token"] == pytest.approx(0.0)
        assert row["rows_per_call"] == pytest.approx(1 + row["drafted"] / row["steps"])
        assert row["verify_cost"] == pytest.approx(1.0)
        assert row["identities_ok"]
    assert rows_of(result)["model 4"]["draft_cost"] == pytest.approx(0.1)
    assert rows_of(result)["ngram 2"]["draft_cost"] == pytest.approx(0.0)


def test_texts_are_the_same_at_temperature_0_and_not_compared_above(settings):
    cold = rows_of(run_comparison(settings()))["model 4"]
    assert (cold["text"], cold["prompts_compared"]) == ("same", 3)
    mixed = rows_of(run_comparison(settings({}, {"temperature": 1.0})))
    assert mixed["model 4"]["text"] == "same"
    assert mixed["model 4, temperature 1.0"]["text"] == "not compared"
    warm = rows_of(run_comparison(settings(temperature=1.0)))["model 4"]
    assert warm["text"] == "not compared"
    assert "its rule is lossless" in warm["text_sentence"]


def test_a_lossy_rule_may_give_another_text_and_is_named(settings):
    row = rows_of(run_comparison(settings({}, {"rule": "naive", "acceptance_probability": 0.5}, agreement=-0.5)))
    lossy = row["model 4, rule naive, acceptance probability 0.5"]
    assert not lossy["lossless"]
    assert lossy["text"] == "difference"
    assert "the rule naive is lossy" in lossy["text_sentence"]
    assert lossy["divergences"][0]["margin"] > 0


def test_categories_have_speed_ups_of_their_own(settings):
    result = run_comparison(settings(agreement=1.0))
    assert result["categories"] == ["models", "memory"]
    assert all(estimate["value"] > 1 for estimate in rows_of(result)["model 4"]["by_category"].values())


def test_every_event_of_every_measured_run_is_passed_on(settings):
    seen = {}
    result = run_comparison(settings(), seen=lambda turn, event: seen.setdefault(turn, []).append(event))
    assert len(seen) == result["runs_done"] == 12
    for turn, events in seen.items():
        assert isinstance(events[0], Started)
        assert isinstance(events[-1], Finished)
        assert measure(events).tokens_generated == 24
        assert turn.configuration.plain == (events[0].drafter == "none")


def test_turns_are_interleaved_and_repeat_by_repeat(settings):
    runs = run_comparison(settings({}, {"draft_length": 2}))["runs"]
    for start in range(0, len(runs), 3):
        group = runs[start : start + 3]
        assert len({run["configuration"] for run in group}) == 3
        assert len({(run["prompt"], run["repeat"]) for run in group}) == 1


def test_a_stop_keeps_what_was_measured(settings):
    done = 0

    def progress(doing, n_done, total):
        nonlocal done
        done = n_done

    result = run_comparison(settings(agreement=1.0), progress, cancelled=lambda: done >= 5)
    assert result["partial"]
    assert (result["runs_done"], len(result["runs"]), result["runs_planned"]) == (5, 5, 12)
    assert sum(row["runs"] for row in result["configurations"]) == 5
    assert rows_of(result)["model 4"]["verdict"] == "helps"


def test_a_stop_within_a_run_drops_that_run(settings):
    steps = 0

    def seen(turn, event):
        nonlocal steps
        steps += 1

    result = run_comparison(settings(repeats=3), seen=seen, cancelled=lambda: steps >= 200)
    assert result["partial"]
    assert all(run["tokens"] == 24 for run in result["runs"])


def test_a_stop_before_the_first_run_leaves_nothing(settings):
    with pytest.raises(Stopped):
        run_comparison(settings(), cancelled=lambda: True)


def test_an_interrupt_keeps_what_was_measured(settings):
    def progress(doing, done, total):
        if done == 4:
            raise KeyboardInterrupt

    assert run_comparison(settings(), progress)["runs_done"] == 4


def test_result_is_plain_data(settings):
    result = run_comparison(settings(), with_costs=True)
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert (result["schema"], result["kind"], result["partial"]) == (1, "draftscope comparison", False)


def test_predictions_equal_measurement_where_calls_are_all_that_costs(settings):
    lengths = (1, 2, 4, 8)
    result = run_comparison(settings(*({"draft_length": length} for length in lengths)), with_costs=True)
    points = result["predictions"]["model"]["points"]
    assert [point["draft_length"] for point in points] == list(lengths)
    for point in points:
        row = rows_of(result)[point["name"]]
        lost = sum(run["tokens"] for run in result["runs"] if run["configuration"] == point["name"])
        assert lost == row["tokens"]
        assert point["off_by"] == pytest.approx(0.0, abs=1e-9)


def test_a_prediction_beside_a_measurement_is_that_of_its_row(settings):
    """The stop string cuts blocks, so that there is something to take off; agreement makes them long."""
    result = run_comparison(
        settings({"draft_length": 5}, {"draft_length": 9}, agreement=1.0, stop=("the",)), with_costs=True
    )
    found = result["predictions"]["model"]
    assert found["simulated"] is True
    for point in found["points"]:
        row = rows_of(result)[point["name"]]
        assert row["discarded"] > 0
        assert point["predicted"] == pytest.approx(row["predicted_speed_up"])
        assert point["predicted"] < found["predicted"][point["draft_length"]]
        assert point["off_by"] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("draft_seconds", "why"), [(0.0, "is instant"), (0.002, "takes no time on its clock")])
def test_nothing_is_predicted_where_calls_are_instant_and_the_result_says_why(settings, draft_seconds, why):
    way = settings(repeats=1, target_call_seconds=0.0, draft_call_seconds=draft_seconds)
    result = run_comparison(way, with_costs=True)
    assert (costs_of(way), result["costs"], result.get("predictions")) == (None, None, None)
    assert rows_of(result)["model 4"]["predicted_speed_up"] is None
    assert why in result["not_predicted"]
    assert f"What if: {result['not_predicted']}" in text_report(result, table)
    unasked = run_comparison(way)
    assert unasked["not_predicted"] is None
    assert "What if" not in text_report(unasked, table)


def test_no_prediction_speaks_of_trees(settings):
    result = run_comparison(settings({}, {"rule": "tree-match"}), with_costs=True)
    tree, chain = rows_of(result)["model 4, rule tree-match"], rows_of(result)["model 4"]
    for name in ("predicted_speed_up", "measured_over_predicted", "predicted_by_the_paper"):
        assert tree[name] is None
        assert chain[name] is not None
    assert list(result["predictions"]) == ["model"]
    json.dumps(result, allow_nan=False)


def test_a_tree_that_helps_is_told_with_what_a_whole_one_costs(settings):
    """What the cheap draft takes is one call for each depth, whatever the number of siblings."""
    row = rows_of(run_comparison(settings(rule="tree-match", agreement=1.0)))["model 4"]
    assert row["verdict"] == "helps"
    assert row["draft_cost"] < 0.1 < row["draft_cost_per_step"]
    cost = f"drafting a tree costs {row['draft_cost_per_step']:.2f} target calls and"
    assert cost in row["sentence"]


def test_every_way_to_propose_is_timed_with_its_own_settings(settings, monkeypatch):
    timed = []
    original = run_module.measure_costs

    def measure_costs(spec, drafters, *others, **options):
        timed.append((spec.temperature, spec.ngram_max, drafters))
        return original(spec, drafters, *others, **options)

    monkeypatch.setattr(run_module, "measure_costs", measure_costs)
    ngram = {"drafter": "ngram"}
    ways = ({"temperature": 1.0}, {"draft_length": 2}, ngram, {**ngram, "ngram_max": 2})
    result = run_comparison(settings(*ways, repeats=1), with_costs=True)
    assert timed == [(1.0, 3, ["model", "ngram"]), (0.0, 2, ["model", "ngram"])]
    names = ["model", "model, temperature 0.0", "ngram", "ngram, ngram max 2"]
    assert [row["proposal"] for row in result["configurations"]] == [None, *names]
    assert set(result["costs"]["draft"]) == set(names)
    assert len(result["predictions"]) == 4


def test_a_lossy_rule_beside_a_lookup_has_costs(settings):
    ways = ({"rule": "naive"}, {"drafter": "ngram"}, {"drafter": "model:markov"})
    assert set(costs_of(settings(*ways)).draft) == {"model", "ngram", "model:markov"}


def test_progress_of_several_measurements_never_falls(settings):
    told = []
    ways = ({"temperature": 1.0}, {}, {"drafter": "ngram"})
    costs_of(settings(*ways), progress=lambda done, total: told.append(done / total))
    assert told == sorted(told)
    assert (told[0], told[-1] < 1) == (0, True)


def test_costs_without_a_drafter_are_the_target_s(settings):
    costs = costs_of(settings({"drafter": "none"}))
    assert (costs.draft, costs.verify[0]) == ({}, 1.0)


def test_costs_are_measured_up_to_seventeen_rows_with_progress(settings):
    told = []
    costs = costs_of(settings(), ["model"], progress=lambda done, total: told.append((done, total)))
    assert costs.verify == pytest.approx([1.0] * 17)
    assert costs.draft["model"].of_call(16) == pytest.approx(0.1)
    assert told == [(done, len(told)) for done in range(len(told))]
    with pytest.raises(Stopped):
        costs_of(settings(), ["model"], cancelled=lambda: True)


def test_a_busy_machine_is_told_unless_the_time_is_made_up(settings, monkeypatch):
    monkeypatch.setattr("engine.compare.run.load_average", lambda: 1000.0)
    real = run_comparison(settings(target_call_seconds=0.0, draft_call_seconds=0.0, repeats=1))
    assert (real["busy"], real["simulated"]) == (True, False)
    assert "BUSY: the load average was 1000.00 before and 1000.00 after" in text_report(real, table)
    assert not run_comparison(settings(repeats=1))["busy"]


def test_a_note_of_the_backend_is_kept(settings):
    assert run_comparison(settings(repeats=1))["backend_note"] is None
    assert "does nothing for markov" in run_comparison(settings(repeats=1, backend="numpy"))["backend_note"]


def test_a_machine_that_becomes_busy_is_told(settings, monkeypatch):
    loads = iter([0.0, 1000.0])
    monkeypatch.setattr("engine.compare.run.load_average", lambda: next(loads))
    real = run_comparison(settings(target_call_seconds=0.0, draft_call_seconds=0.0, repeats=1))
    assert real["busy"]
    assert "BUSY: the load average was 0.00 before and 1000.00 after" in text_report(real, table)


def test_bad_settings_are_told_before_anything_is_loaded(settings):
    with pytest.raises(PromptError, match="no prompts"):
        run_comparison(settings(prompts=()))
    with pytest.raises(SettingError, match="logits"):
        run_comparison(settings({}, {"drafter": "ngram", "rule": "naive"}))
    with pytest.raises(SettingError, match="at least 1"):
        run_comparison(settings(repeats=0))
    with pytest.raises(ModelNotFound):
        run_comparison(
            CompareSettings((settings().specs[0].__class__(target="no-such", drafter="ngram"),), (Prompt("1", "Hi"),))
        )


def test_csv_has_a_row_for_every_configuration_and_no_cell_that_runs(settings):
    prompts = (Prompt("=1+1", "The draft model", "=cmd()"), Prompt("2", "The target", "models"))
    result = run_comparison(settings(prompts=prompts, repeats=1))
    lines = list(csv.DictReader(io.StringIO("".join(comparison_csv(result)))))
    assert [line["name"] for line in lines] == ["plain", "model 4"]
    row = rows_of(result)["model 4"]
    assert float(lines[1]["speed_up"]) == row["speed_up"]["value"]
    assert float(lines[1]["speed_up_low"]) == row["speed_up"]["low"]
    assert lines[0]["speed_up"] == ""
    assert lines[1]["simulated"] == "true"
    assert json.loads(lines[1]["by_category"])["models"]["value"] > 0
    runs = list(csv.DictReader(io.StringIO("".join(comparison_runs_csv(result)))))
    assert len(runs) == 4
    assert {run["prompt"] for run in runs} == {"'=1+1", "2"}
