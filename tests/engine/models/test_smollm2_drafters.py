"""The drafters that copy or exit early, on the real file: the plain ids, and how far a copy goes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from engine.decode import decode
from engine.drafters import Drafter, ModelDrafter, NoDraft, PromptLookup, SuffixDecoding, TokenRecycling
from engine.lengths import FixedLength
from engine.metrics import Figures, measure
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


@pytest.fixture(scope="module", params=["ort", "numpy"])
def loaded(request: pytest.FixtureRequest, smollm2: LoadedModel, smollm2_path: Path, tmp_path_factory) -> LoadedModel:
    if request.param == "numpy":
        return smollm2
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAFTSCOPE_HOME", str(tmp_path_factory.mktemp("compiled")))
        return load_gguf(smollm2_path, name="smollm2-135m", backend="ort")


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


def test_greedy_text_is_the_plain_text(loaded: LoadedModel) -> None:
    n_prompts = 10 if loaded.model.backend == "ort" else 1  # the drafters are the same for both, and numpy is slow
    for prompt in PROMPTS[:n_prompts]:
        ids = loaded.tokenizer.encode(prompt)
        plain_model, model = loaded.model.fork(), loaded.model.fork()
        plain = ids_of(events(loaded, NoDraft(), plain_model, ids, 24, 0))
        early = ModelDrafter(EarlyExit(model, 24), model.vocab_size)
        for drafter, length in ((SuffixDecoding(), 4), (PromptLookup(), 4), (TokenRecycling(), 4), (early, 1)):
            assert ids_of(events(loaded, drafter, model, ids, 24, length)) == plain, (prompt, drafter.name)


def test_suffix_decoding_copies_further_than_prompt_lookup(loaded: LoadedModel) -> None:
    if loaded.model.backend == "numpy":
        pytest.skip("the text is much the same, and its drafts are")
    prompt = loaded.tokenizer.chat(COPY)

    def figures(drafter: Drafter) -> Figures:
        return measure(events(loaded, drafter, loaded.model.fork(), prompt, 48, 4))

    suffix, lookup = figures(SuffixDecoding()), figures(PromptLookup())
    assert suffix.tokens_per_step is not None
    assert lookup.tokens_per_step is not None
    assert suffix.tokens_per_step >= lookup.tokens_per_step > 2
