"""The drafters that copy or exit early, on the real file: the plain ids, and how far a copy goes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from engine.decode import decode
from engine.drafters import Drafter, ModelDrafter, NoDraft, PromptLookup, SuffixDecoding, TokenRecycling
from engine.lengths import FixedLength
from engine.metrics import Figures, measure
from engine.models.backends import can_run
from engine.models.base import LoadedModel, Model
from engine.models.early_exit import EarlyExit
from engine.models.gguf_loader import load_gguf
from engine.sampling import Sampling
from engine.values import Event, Finished

pytestmark = pytest.mark.real_model

PROMPTS = [
    "The capital of France is",
    "Repeat: one two three one two three one",
    "def fibonacci(n):\n",
    "Once upon a time, a small fox",
    "To be or not to be, that is",
    "Water boils at 100 degrees because",
    "1, 2, 3, 4, 5,",
    "Milk, bread, eggs, butter. Milk, bread,",
    "The quick brown fox jumps over the lazy dog. The quick",
    "Dear Sir or Madam,",
]
COPY = (
    "Rewrite this code and add a comment above each function, changing nothing else:\n\n"
    "def add(first, second):\n    return first + second\n\n"
    "def subtract(first, second):\n    return first - second\n\n"
    "def multiply(first, second):\n    return first * second"
)


@pytest.fixture(scope="module", params=["ort", "numba"])
def compiled(
    request: pytest.FixtureRequest, smollm2_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> LoadedModel:
    if not can_run(request.param):
        pytest.skip(f"{request.param} does not run here")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAFTSCOPE_HOME", str(tmp_path_factory.mktemp("compiled")))
        return load_gguf(smollm2_path, name="smollm2-135m", backend=request.param)


def events(loaded: LoadedModel, drafter: Drafter, model: Model, prompt: list[int], n: int, length: int) -> list[Event]:
    return list(
        decode(
            model,
            drafter,
            prompt,
            lengths=FixedLength(length),
            sampling=Sampling(temperature=0),
            max_tokens=n,
            end_tokens=loaded.tokenizer.end_tokens,
        )
    )


def ids_of(found: Iterable[Event]) -> tuple[int, ...]:
    *_, finished = found
    assert isinstance(finished, Finished)
    assert not finished.error
    return finished.ids


def check_greedy_text(loaded: LoadedModel, prompt: str, *, recycling: bool) -> None:
    ids, model = loaded.tokenizer.encode(prompt), loaded.model.fork()
    plain = ids_of(events(loaded, NoDraft(), model, ids, 24, 0))
    early = ModelDrafter(EarlyExit(model, 24), model.vocab_size)
    ways: list[tuple[Drafter, int]] = [(SuffixDecoding(), 3), (PromptLookup(), 3), (early, 1)]
    for drafter, length in [*ways, (TokenRecycling(), 4)] if recycling else ways:
        assert ids_of(events(loaded, drafter, model, ids, 24, length)) == plain, (prompt, drafter.name)


def test_greedy_text_is_the_plain_text_on_ten_prompts(compiled: LoadedModel) -> None:
    for place, prompt in enumerate(PROMPTS):
        check_greedy_text(compiled, prompt, recycling=not place)


def test_greedy_text_is_the_plain_text_in_numpy(smollm2: LoadedModel) -> None:
    check_greedy_text(smollm2, PROMPTS[0], recycling=True)


def test_suffix_decoding_copies_further_than_prompt_lookup(compiled: LoadedModel) -> None:
    prompt = compiled.tokenizer.chat(COPY)

    def figures(drafter: Drafter) -> Figures:
        return measure(events(compiled, drafter, compiled.model.fork(), prompt, 48, 4))

    suffix, lookup = figures(SuffixDecoding()), figures(PromptLookup())
    assert suffix.tokens_per_step is not None
    assert lookup.tokens_per_step is not None
    assert suffix.tokens_per_step >= lookup.tokens_per_step > 2
