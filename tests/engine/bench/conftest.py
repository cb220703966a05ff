"""A small benchmark on the embedded pair, with simulated costs."""

import pytest

from engine.bench.prompts import Prompt
from engine.bench.run import BenchSettings
from engine.spec import RunSpec

TARGET_SECONDS, DRAFT_SECONDS = 0.02, 0.003


@pytest.fixture
def settings():
    prompts = (
        Prompt("1", "The draft model", "models"),
        Prompt("2", "To see why this helps, we have to look", "memory"),
        Prompt("3", "The target model reads", "models"),
    )
    base = RunSpec(
        temperature=0.0,
        max_tokens=24,
        target_call_seconds=TARGET_SECONDS,
        draft_call_seconds=DRAFT_SECONDS,
    )
    return BenchSettings(base, prompts, "a test", lengths=(1, 3), repeats=2)
