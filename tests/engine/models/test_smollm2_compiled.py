"""The real file on the compiled backend: close to numpy, and exact in what it promises."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from engine.decode import decode
from engine.drafters import ModelDrafter, NoDraft, PromptLookup
from engine.lengths import FixedLength
from engine.models.backends import can_run
from engine.models.base import LoadedModel
from engine.models.gguf_loader import load_gguf
from engine.sampling import Sampling
from engine.values import Finished
from tests.engine.models.test_smollm2 import TEXT

pytestmark = pytest.mark.real_model

PROMPTS = ["The capital of France is", "Repeat: one two three one two three one", "def fibonacci(n):\n", TEXT[:150]]


@pytest.fixture(scope="module", params=["ort", "numba"])
def compiled(
    request: pytest.FixtureRequest, smollm2_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> LoadedModel:
    if not can_run(request.param):
        pytest.skip(f"{request.param} does not run here")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAFTSCOPE_HOME", str(tmp_path_factory.mktemp("compiled")))
        return load_gguf(smollm2_path, name="smollm2-135m", backend=request.param)


def probabilities(rows: np.ndarray) -> np.ndarray:
    scores = np.exp((rows - rows.max(axis=1, keepdims=True)).astype(float))
    return scores / scores.sum(axis=1, keepdims=True)


def test_the_law_is_close_to_that_of_numpy(compiled: LoadedModel, smollm2: LoadedModel) -> None:
    text = files("engine.models").joinpath("markov.txt").read_text(encoding="utf-8")
    ids = compiled.tokenizer.encode(text)[:500]
    rows = probabilities(compiled.model.fork().logits(ids, last=len(ids)))
    others = probabilities(smollm2.model.fork().logits(ids, last=len(ids)))
    distance = np.abs(rows - others).sum(axis=1) / 2
    assert len(ids) == 500
    assert distance.mean() <= 0.06, "see docs/backends.md for what was measured"
    assert (rows.argmax(axis=1) == others.argmax(axis=1)).mean() >= 0.93


@pytest.mark.parametrize("n_rows", [1, 2, 3, 5, 8, 32])
def test_a_row_is_the_same_alone_and_in_a_block(compiled: LoadedModel, n_rows: int) -> None:
    assert compiled.model.exact_rows
    ids = compiled.tokenizer.encode(TEXT)[: 100 + n_rows]
    model = compiled.model.fork()
    alone = np.concatenate([model.logits(ids[: 101 + place]) for place in range(n_rows)])
    assert np.array_equal(model.logits(ids, last=n_rows), alone)
    assert np.array_equal(model.fork().logits(ids, last=n_rows), alone)


def test_going_back_to_every_length_gives_the_rows_from_scratch(compiled: LoadedModel) -> None:
    ids = compiled.tokenizer.encode(TEXT)
    model = compiled.model.fork()
    for n_accepted in range(9):
        model.logits(ids[:32], last=9)
        context = ids[: 24 + n_accepted] + ids[60:64]
        assert np.array_equal(model.logits(context, last=5), model.fork().logits(context, last=5))


def test_hidden_rows_cost_no_further_pass(compiled: LoadedModel) -> None:
    ids = compiled.tokenizer.encode(TEXT)[:40]
    model = compiled.model.fork()
    fresh = model.fork().hidden(ids, last=40, taps=(9, 19))
    model.hidden(ids[:1], taps=(9, 19))
    model.logits(ids[:32])
    model.logits(ids, last=9)
    vars(model if model.backend == "numba" else model._buffers)["_run" if model.backend == "numba" else "run"] = None
    for n_accepted in range(9):
        rows = model.hidden(ids[: 32 + n_accepted], last=n_accepted + 1, taps=(9, 19))
        assert np.array_equal(rows, fresh[31 : 32 + n_accepted])


@pytest.mark.parametrize("prompt", PROMPTS)
def test_greedy_speculative_text_is_greedy_plain_text(compiled: LoadedModel, prompt: str) -> None:
    ids = compiled.tokenizer.encode(prompt)

    def emitted(drafter: object, length: int) -> tuple[int, ...]:
        target = compiled.model.fork()
        *_, finished = decode(
            target, drafter, ids, lengths=FixedLength(length), sampling=Sampling(temperature=0), max_tokens=32
        )  # type: ignore[arg-type]
        assert isinstance(finished, Finished)
        assert finished.error == ""
        return finished.ids

    plain = emitted(NoDraft(), 0)
    for length in (1, 2, 3, 4, 8):
        assert emitted(PromptLookup(), length) == plain
    other = ModelDrafter(replace(compiled).model.fork(), compiled.model.vocab_size)
    assert emitted(other, 5) == plain
