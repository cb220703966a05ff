"""A whole benchmark on the embedded pair: every ratio follows from counts, exactly."""

import dataclasses
import json

import pytest

from engine.bench import measure as measure_module
from engine.bench.plan import usable_drafters
from engine.bench.prompts import Prompt
from engine.bench.report import text_report
from engine.bench.run import run_bench
from engine.cli.table import table
from engine.errors import ForwardError, MissingPackage, PromptError, SettingError
from tests.engine.bench.conftest import DRAFT_SECONDS, TARGET_SECONDS


@pytest.fixture
def result(settings):
    return run_bench(settings)


def rows_of(result):
    return {row["name"]: row for row in result["configurations"]}


def test_every_ratio_follows_from_the_calls_that_were_made(result):
    rows = rows_of(result)
    assert {"plain", "ngram 1", "ngram 3", "model 1", "model 3"} <= set(rows)
    assert rows["plain"]["tokens_per_second"] == pytest.approx(1 / TARGET_SECONDS)
    for row in rows.values():
        if row["drafter"] not in ("model", "ngram"):
            continue
        draft_seconds = DRAFT_SECONDS * row["drafted"] if row["drafter"] == "model" else 0.0
        seconds = row["steps"] * TARGET_SECONDS + draft_seconds
        assert row["speed_up"]["value"] == pytest.approx(row["tokens"] * TARGET_SECONDS / seconds)
        assert row["speed_up"]["low"] <= row["speed_up"]["value"] <= row["speed_up"]["high"]
        assert row["measured_over_predicted"] == pytest.approx(1.0)
        assert row["draft_share"] == pytest.approx(draft_seconds / seconds)
        assert row["draft_share"] + row["verify_share"] == pytest.approx(1.0)


def test_nothing_is_predicted_of_the_embedded_pair_without_prices(settings):
    instant = dataclasses.replace(settings.base, target_call_seconds=0.0, draft_call_seconds=0.0)
    found = run_bench(dataclasses.replace(settings, base=instant, prompts=settings.prompts[:1], lengths=(2,)))
    assert found["costs"] is None
    assert {row["predicted_speed_up"] for row in found["configurations"]} == {None}
    assert f"not measured: {found['not_predicted']}" in text_report(found, table)
    assert "is instant" in found["not_predicted"]


def test_text_is_the_plain_text_at_temperature_0(result):
    for row in result["configurations"][1:]:
        assert (row["prompts_compared"], row["prompts_that_differ"], row["divergences"]) == (3, 0, [])
    assert result["configurations"][0]["prompts_compared"] is None


def test_text_is_not_compared_above_temperature_0(settings):
    warm = dataclasses.replace(settings, base=dataclasses.replace(settings.base, temperature=1.0))
    assert {row["prompts_compared"] for row in run_bench(warm)["configurations"]} == {None}


def test_categories_have_ratios_of_their_own_and_a_mean(result):
    assert result["categories"] == ["models", "memory"]
    row = rows_of(result)["ngram 3"]
    values = [estimate["value"] for estimate in row["by_category"].values()]
    assert row["mean_over_categories"] == pytest.approx(sum(values) / 2)


def test_result_is_plain_data_with_runs_machine_and_circumstances(result):
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert (result["schema"], result["kind"], result["simulated"], result["partial"]) == (
        1, "draftscope bench", True, False,
    )  # fmt: skip
    assert result["runs_done"] == result["runs_planned"] == len(result["runs"]) == len(rows_of(result)) * 3 * 2
    assert set(result["runs"][0]) == {
        "configuration", "prompt", "repeat", "tokens", "tokens_timed", "decode_seconds", "prefill_seconds", "steps",
        "drafted", "accepted",
    }  # fmt: skip
    assert {"processor", "cores", "memory_bytes", "system", "threads", "versions"} <= set(result["machine"])
    assert {"draftscope", "python", "numpy"} <= set(result["machine"]["versions"])
    assert {"load_before", "load_after", "load_seconds", "peak_memory_bytes", "started"} <= set(result)
    assert result["settings"]["lengths"] == [1, 3]
    assert len(result["costs"]["verify"]) == 9


def test_verdict_says_helps_with_the_best(result):
    assert result["verdict"].startswith("helps: ")
    best = max(result["configurations"][1:], key=lambda row: row["speed_up"]["value"])
    assert f"with {best['drafter']} at draft length {best['draft_length']}" in result["verdict"]


def test_verdict_says_hurts_and_why(settings):
    slow = dataclasses.replace(settings.base, draft_call_seconds=0.05, agreement=-1.0)
    result = run_bench(dataclasses.replace(settings, base=slow, drafters=("model",)))
    assert result["verdict"].startswith("hurts: the best is 0.")
    assert "because a step yields 1." in result["verdict"]
    assert "draft" in result["verdict"]


def test_only_the_drafters_asked_for_are_measured(settings):
    result = run_bench(dataclasses.replace(settings, drafters=("ngram",)))
    assert list(rows_of(result)) == ["plain", "ngram 1", "ngram 3"]
    with pytest.raises(SettingError, match="crystal-ball"):
        run_bench(dataclasses.replace(settings, drafters=("crystal-ball",)))


def test_drafters_that_the_target_lacks_are_named_with_the_reason(settings, result):
    usable, skipped = usable_drafters(dataclasses.replace(settings.base, prompt="The draft"))
    assert result["settings"]["drafters"] == usable
    assert result["skipped"] == skipped


def test_an_interrupt_keeps_what_was_measured(settings):
    def progress(doing, done, total):
        if done == 12:
            raise KeyboardInterrupt

    result = run_bench(settings, progress)
    assert result["partial"]
    assert (result["runs_done"], len(result["runs"])) == (12, 12)
    rows = rows_of(result)
    assert sum(row["runs"] for row in rows.values()) == 12
    assert rows["ngram 3"]["speed_up"]["value"] > 1


def test_an_interrupt_after_one_run_still_gives_a_result(settings):
    def progress(doing, done, total):
        if done == 1:
            raise KeyboardInterrupt

    result = run_bench(settings, progress)
    assert sum(row["runs"] for row in result["configurations"]) == 1
    assert result["verdict"].startswith("not known")
    assert all(row["speed_up"] is None for row in result["configurations"])


def test_an_interrupt_before_the_first_run_is_an_interrupt(settings, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(measure_module.OwnEngine, "warm_up", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_bench(settings)


def test_a_run_that_fails_is_named(settings, monkeypatch):
    monkeypatch.setattr(measure_module.OwnEngine, "warm_up", lambda *_: None)
    broken = measure_module.OwnEngine(settings.base)
    figures = broken._decode(settings.base.__class__(prompt="The draft", max_tokens=2))[2]
    failed = dataclasses.replace(figures, error="step 3: it broke")
    monkeypatch.setattr(measure_module.OwnEngine, "_decode", lambda *_: ([], [], failed))
    with pytest.raises(ForwardError, match=r"prompt 1: step 3: it broke"):
        run_bench(settings)


def test_no_prompts_is_told(settings):
    with pytest.raises(PromptError, match="no prompts"):
        run_bench(dataclasses.replace(settings, prompts=()))


def test_a_prompt_that_is_too_long_is_named_before_anything_is_measured(settings, monkeypatch):
    monkeypatch.setattr("engine.models.markov.MarkovModel.context_length", 20)
    long = Prompt("long", "the model " * 15)
    with pytest.raises(PromptError, match=r"prompt long has 30 tokens, and markov takes 20"):
        run_bench(dataclasses.replace(settings, prompts=(*settings.prompts, long)))


def test_a_rival_needs_a_file(settings, monkeypatch):
    monkeypatch.setattr("engine.bench.against.find_spec", lambda name: object())
    with pytest.raises(SettingError, match="need a GGUF file, and markov has none"):
        run_bench(dataclasses.replace(settings, rivals=("llama.cpp",)))


@pytest.mark.parametrize(
    ("rival", "extra"), [("llama.cpp", "bench-llamacpp"), ("transformers", "bench-hf")]
)  # fmt: skip
def test_a_rival_that_is_not_installed_names_the_extra(settings, monkeypatch, rival, extra):
    monkeypatch.setattr("engine.bench.against.find_spec", lambda name: None)
    with pytest.raises(MissingPackage, match=rf'pip install "draftscope\[{extra}\]"'):
        run_bench(dataclasses.replace(settings, rivals=(rival,)))


def test_an_unknown_rival_is_told(settings):
    with pytest.raises(SettingError, match="no rival 'vllm'"):
        run_bench(dataclasses.replace(settings, rivals=("vllm",)))
