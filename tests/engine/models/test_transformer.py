"""The forward pass against one written from the papers, and the cache against no cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.errors import PromptError
from engine.models import transformer
from engine.models.base import Model
from engine.models.gguf_loader import load_gguf
from tests.engine.models import reference
from tests.engine.models.tiny_files import TOKENS, Tiny, write

KINDS = {
    "llama with a tied head": Tiny(),
    "llama with a head of its own": Tiny(tied=False),
    "llama 3 with frequency factors": Tiny(with_factors=True),
    "llama with linear scaling": Tiny(rope_scale=4.0),
    "llama that turns part of a head": Tiny(n_rope_dims=4),
    "mistral nemo: heads wider than width / n_heads": Tiny(head_dim=10, n_rope_dims=10),
    "one key-value head per query head": Tiny(n_kv_heads=4),
    "one key-value head in all": Tiny(n_kv_heads=1),
    "qwen2 with biases": Tiny(family="qwen2", tied=False),
    "qwen3 with normed queries and keys": Tiny(family="qwen3", head_dim=10, n_rope_dims=10),
}
IDS = np.random.default_rng(3).integers(0, len(TOKENS), 600).tolist()


def model_of(tmp_path: Path, tiny: Tiny) -> Model:
    return load_gguf(write(tmp_path / "tiny.gguf", tiny)).model


def expected(tiny: Tiny, ids: list[int]) -> np.ndarray:
    shape = reference.Shape(
        n_layers=tiny.n_layers,
        n_heads=tiny.n_heads,
        n_kv_heads=tiny.n_kv_heads,
        head_dim=tiny.head_dim,
        n_rope_dims=tiny.n_rope_dims,
        rope_base=100.0,
        rope_scale=tiny.rope_scale,
        interleaved=tiny.family == "llama",
    )
    return reference.logits({name: array.astype(float) for name, array in tiny.tensors().items()}, shape, ids)


@pytest.mark.parametrize("tiny", KINDS.values(), ids=KINDS.keys())
def test_rows_equal_the_reference(tmp_path: Path, tiny: Tiny) -> None:
    ids = IDS[:40]
    rows = model_of(tmp_path, tiny).logits(ids, last=40)
    assert rows.dtype == np.float32
    assert np.abs(rows - expected(tiny, ids)).max() < 2e-5


def test_token_by_token_equals_the_reference(tmp_path: Path) -> None:
    model = model_of(tmp_path, Tiny())
    rows = np.concatenate([model.logits(IDS[:end]) for end in range(1, 30)])
    assert np.abs(rows - expected(Tiny(), IDS[:29])).max() < 2e-5


def test_a_prompt_longer_than_a_chunk_equals_the_reference(tmp_path: Path) -> None:
    tiny = Tiny(context_length=600, n_layers=1)
    rows = model_of(tmp_path, tiny).logits(IDS, last=300)
    assert np.abs(rows - expected(tiny, IDS)[-300:]).max() < 1e-4


@pytest.mark.parametrize("tiny", KINDS.values(), ids=KINDS.keys())
def test_cached_rows_equal_rows_from_scratch_after_every_accepted_length(tmp_path: Path, tiny: Tiny) -> None:
    # mlx-lm issue 1446: after a rollback the cache was not what it should have been
    model = model_of(tmp_path, tiny)
    prompt, draft, others = IDS[:20], IDS[20:28], IDS[30:38]
    for n_accepted in range(len(draft) + 1):
        model.logits(prompt + draft, last=len(draft) + 1)
        context = prompt + draft[:n_accepted] + others
        fresh = model.fork().logits(context, last=len(others) + 1)
        assert np.abs(model.logits(context, last=len(others) + 1) - fresh).max() < 1e-5


def test_a_row_is_the_same_whatever_rows_are_beside_it(tmp_path: Path) -> None:
    model = model_of(tmp_path, Tiny())
    prompt = IDS[:30]
    alone = np.concatenate([model.logits(IDS[:end]) for end in range(30, 63)])
    assert len(alone) == transformer.N_SEPARATE_ROWS
    for n_rows in range(1, transformer.N_SEPARATE_ROWS + 1):
        together = model.logits(prompt + IDS[30 : 29 + n_rows], last=n_rows)
        assert np.array_equal(together, alone[:n_rows])


def test_asking_again_gives_the_same_rows(tmp_path: Path) -> None:
    model = model_of(tmp_path, Tiny())
    first = model.logits(IDS[:30], last=5)
    assert np.array_equal(model.logits(IDS[:30], last=5), first)
    assert np.abs(model.logits(IDS[:30], last=30)[-5:] - first).max() < 1e-5
    assert np.abs(model.logits(IDS[:10], last=2) - model.fork().logits(IDS[:10], last=2)).max() < 1e-5


def test_rows_handed_out_stay_as_they_were(tmp_path: Path) -> None:
    model = model_of(tmp_path, Tiny())
    first = model.logits(IDS[:8])
    kept = first.copy()
    model.logits(IDS[40:48])
    assert np.array_equal(first, kept)


def test_forks_do_not_disturb_each_other(tmp_path: Path) -> None:
    model = model_of(tmp_path, Tiny())
    fork = model.fork()
    alone = model.fork().logits(IDS[:12], last=3)
    model.logits(IDS[:9])
    fork.logits(IDS[20:40])
    assert np.abs(model.logits(IDS[:12], last=3) - alone).max() < 1e-5
    assert np.abs(fork.logits(IDS[:12], last=3) - alone).max() < 1e-5


def test_an_interrupted_forward_leaves_no_false_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(tmp_path, Tiny())
    model.logits(IDS[:10])
    calls = []

    def failing(*arguments: object) -> np.ndarray:
        calls.append(arguments)
        if len(calls) == 2:  # in the second layer, when the first has written its keys and values
            raise KeyboardInterrupt
        return feed_forward(*arguments)

    feed_forward = transformer._feed_forward
    monkeypatch.setattr(transformer, "_feed_forward", failing)
    with pytest.raises(KeyboardInterrupt):
        model.logits(IDS[:5] + IDS[50:60])
    monkeypatch.undo()
    for context in (IDS[:5] + IDS[50:60], IDS[:10]):
        model_rows, fresh = model.logits(context, last=2), model.fork().logits(context, last=2)
        assert np.abs(model_rows - fresh).max() < 1e-5


def test_the_whole_context_can_be_used(tmp_path: Path) -> None:
    tiny = Tiny(context_length=300, n_layers=1)
    model = model_of(tmp_path, tiny)
    for end in (250, 257, 290, 300):
        model.logits(IDS[:end])
    assert np.abs(model.logits(IDS[:300], last=2) - expected(tiny, IDS[:300])[-2:]).max() < 1e-4
    with pytest.raises(PromptError, match="301 tokens and takes at most 300"):
        model.logits(IDS[:301])


@pytest.mark.parametrize(
    ("context", "last", "message"),
    [
        ([], 1, "no tokens"),
        ([1, -1], 1, "the id -1; its ids go from 0 to 270"),
        ([1, len(TOKENS)], 1, "the id 271; its ids go from 0 to 270"),
        ([1.5, 2.0], 1, "whole numbers"),
        ([1, 2], 0, "the last 0 rows of 2; ask for 1 to 2"),
        ([1, 2], 3, "the last 3 rows of 2; ask for 1 to 2"),
    ],
)
def test_an_impossible_context_is_refused(tmp_path: Path, context: list[int], last: int, message: str) -> None:
    with pytest.raises(PromptError, match=message):
        model_of(tmp_path, Tiny()).logits(context, last)


def test_a_file_is_a_model_with_its_name_and_size(tmp_path: Path) -> None:
    path = write(tmp_path / "tiny.gguf", Tiny())
    loaded = load_gguf(path)
    assert isinstance(loaded.model, Model)
    assert (loaded.model.name, loaded.model.vocab_size, loaded.model.context_length) == ("tiny", len(TOKENS), 64)
    assert load_gguf(path, name="other").model.name == "other"
    assert loaded.partner is None
    assert loaded.clock is None
