"""A comparison on the real model: texts are the same, counts and shares add up. No time is asserted."""

import pytest

from engine.bench.prompts import built_in_prompts, one_of_each
from engine.compare.choices import spec_from_words
from engine.compare.run import CompareSettings, run_comparison
from engine.spec import RunSpec

pytestmark = pytest.mark.real_model


def test_lookup_and_trained_head_emit_the_plain_text_and_get_a_verdict(smollm2_path):
    base = RunSpec(target=str(smollm2_path), temperature=0.0, max_tokens=24)
    specs = tuple(spec_from_words(words, base) for words in ("ngram:4", "eagle+ngram:3"))
    result = run_comparison(CompareSettings(specs, one_of_each(built_in_prompts(), 2), repeats=1))
    assert not result["simulated"]
    assert result["runs_done"] == 6
    for row in result["configurations"][1:]:
        assert row["text"] == "same", row["text_sentence"]
        assert row["verdict"] in ("helps", "hurts", "no difference")
        assert row["identities_ok"]
        parts = [row[f"{part}_seconds_per_token"] for part in ("draft", "verify", "overhead")]
        assert sum(parts) * row["tokens"] == pytest.approx(
            sum(run["decode_seconds"] for run in result["runs"] if run["configuration"] == row["name"])
        )
