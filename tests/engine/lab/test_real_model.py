"""The lab on the real model: its laws are too large to look at every token, and that is told. No time is asserted."""

import pytest

from engine.lab.first_token import ENOUGH
from engine.lab.trace import trace_run
from engine.spec import RunSpec

pytestmark = pytest.mark.real_model


def test_lossless_rules_have_no_bias_on_a_trained_head_as_far_as_was_looked(smollm2_path):
    spec = RunSpec(
        target=str(smollm2_path), drafter="eagle", length_policy="fixed", draft_length=2, temperature=0.8, max_tokens=6,
        prompt="Why is the sky blue?",
    )  # fmt: skip
    found = trace_run(spec)
    assert found.steps
    for rule in found.rules:
        assert rule.bias_unknown <= 1 - ENOUGH
        assert rule.keeps_the_law or not rule.lossless
    assert any("not looked at" in note for note in found.notes)
    assert all(note.count("not looked at") <= 1 for note in found.notes)
