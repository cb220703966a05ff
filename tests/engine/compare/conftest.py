"""Small comparisons on the embedded pair: a call of the target costs ten times one of the draft."""

from dataclasses import replace

import pytest

from engine.bench.prompts import Prompt
from engine.compare.run import CompareSettings
from engine.spec import RunSpec

PROMPTS = (
    Prompt("1", "The draft model", "models"),
    Prompt("2", "To see why this helps, we have to look", "memory"),
    Prompt("3", "The target model reads", "models"),
)
BASE = RunSpec(temperature=0.0, max_tokens=24, target_call_seconds=0.02, draft_call_seconds=0.002)


@pytest.fixture
def settings():
    def make(*changes, repeats=2, prompts=PROMPTS, **shared):
        base = replace(BASE, **shared)
        return CompareSettings(tuple(replace(base, **change) for change in changes or ({},)), prompts, repeats)

    return make
