"""What every backend promises of a model, held against each, on tiny files of each family and on the real one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.errors import PromptError, SettingError
from engine.models.base import HiddenModel, Model
from engine.models.gguf_loader import load_gguf
from tests.engine.models.tiny_files import TOKENS, Tiny, write

BACKENDS = ["numpy", "ort", "numba"]
WIDE = {"head_dim": 16, "n_rope_dims": 16, "width": 64, "ffn_width": 96, "context_length": 80}
KINDS = {
    "llama with a tied head": Tiny(**WIDE),
    "llama with a head of its own": Tiny(**WIDE, tied=False),
    "llama 3 with frequency factors": Tiny(**WIDE, with_factors=True),
    "llama with linear scaling": Tiny(**WIDE, rope_scale=4.0),
    "llama that turns part of a head": Tiny(**WIDE | {"head_dim": 32}),
    "llama of a width that blocks do not divide": Tiny(**WIDE | {"width": 72, "ffn_width": 100}),
    "one key-value head per query head": Tiny(**WIDE, n_kv_heads=4),
    "one key-value head in all": Tiny(**WIDE, n_kv_heads=1),
    "qwen2 with biases": Tiny(**WIDE, family="qwen2", tied=False),
    "qwen3 with normed queries and keys": Tiny(**WIDE, family="qwen3"),
}
IDS = np.random.default_rng(3).integers(0, len(TOKENS), 80).tolist()
N_BEFORE = 20
CLOSE = {"numpy": 5e-5, "ort": 0.0, "numba": 0.0}  # the compiled rows do not depend at all on what was computed before


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def tiny(request: pytest.FixtureRequest) -> Tiny:
    assert isinstance(request.param, Tiny)
    return request.param


@pytest.fixture
def model(backend: str, tiny: Tiny, tmp_path: Path) -> Model:
    model = load_gguf(write(tmp_path / "tiny.gguf", tiny), backend=backend).model
    assert isinstance(model, HiddenModel)
    return model


def close(rows: np.ndarray, others: np.ndarray, backend: str) -> bool:
    return bool(np.abs(rows - others).max() <= CLOSE[backend])


def test_rows_have_the_right_shape(model: Model) -> None:
    for last in (1, 2, 12):
        rows = model.logits(IDS[:12], last)
        assert rows.shape == (last, model.vocab_size)
        assert rows.dtype == np.float32
        assert np.isfinite(rows).all()


def test_the_answer_does_not_depend_on_earlier_calls(model: Model, backend: str) -> None:
    fresh = model.fork().logits(IDS[:30], last=4)
    for before in (IDS[:30], IDS[:10], IDS[:10] + IDS[50:70], IDS[40:41], IDS[:60]):
        model.logits(before, last=len(before) // 2 + 1)
        assert close(model.logits(IDS[:30], last=4), fresh, backend)


def test_the_last_n_rows_equal_n_calls(model: Model, backend: str) -> None:
    together = model.logits(IDS[:30], last=9)
    assert close(together, np.concatenate([model.logits(IDS[:end]) for end in range(22, 31)]), backend)


def test_a_fork_is_independent(model: Model, backend: str) -> None:
    alone = model.fork().logits(IDS[:12], last=3)
    fork = model.fork()
    model.logits(IDS[:9])
    fork.logits(IDS[20:40])
    assert close(model.logits(IDS[:12], last=3), alone, backend)
    assert close(fork.logits(IDS[:12], last=3), alone, backend)


def test_going_back_to_every_length_gives_the_rows_from_scratch(model: Model, backend: str) -> None:
    whole, others = IDS[:40], IDS[60:63]
    for kept in range(len(whole) + 1):
        model.logits(whole, last=3)
        context = whole[:kept] + others
        assert close(model.logits(context, last=2), model.fork().logits(context, last=2), backend)


def test_the_whole_context_can_be_used_and_no_more(model: Model, backend: str) -> None:
    room = model.context_length
    fresh = model.fork().logits(IDS[:room], last=2)
    for end in (room - 2, room - 1, room):
        model.logits(IDS[:end])
    assert close(model.logits(IDS[:room], last=2), fresh, backend)
    with pytest.raises(PromptError, match="81 tokens and takes at most 80"):
        model.logits([*IDS, 1])


@pytest.mark.parametrize("n_rows", [1, 2, 3, 5, 8, 9, 32, 33])
def test_a_row_is_the_same_alone_and_in_a_block(model: Model, n_rows: int) -> None:
    alone = np.concatenate([model.logits(IDS[: N_BEFORE + 1 + place]) for place in range(n_rows)])
    assert np.array_equal(model.logits(IDS[: N_BEFORE + n_rows], last=n_rows), alone)


def test_hidden_rows_are_those_of_the_logits(model: HiddenModel, tiny: Tiny, backend: str) -> None:
    fresh = model.fork().hidden(IDS[:34], last=34, taps=(1, 0))
    assert fresh.shape == (34, 3, tiny.width)
    norm = tiny.tensors()["output_norm.weight"]
    last = fresh[:, 1]
    assert np.abs(last / np.sqrt((last**2).mean(axis=-1, keepdims=True) + 1e-5) * norm - fresh[:, 0]).max() < 1e-5
    rows = model.logits(IDS[:34], last=5)
    hidden = model.hidden(IDS[:32], last=3, taps=(1, 0))
    assert np.array_equal(hidden, fresh[29:32]) or backend == "numpy"
    assert np.abs(hidden - fresh[29:32]).max() < 1e-4
    head = tiny.tensors().get("output.weight", tiny.tensors()["token_embd.weight"])
    assert np.abs(hidden[:, 0] @ head.T - rows[:3]).max() < (1e-4 if backend == "numpy" else 0.1)
    with pytest.raises(SettingError, match="no layer 7"):
        model.hidden(IDS[:3], taps=(7,))


def test_the_compiled_rows_are_close_to_those_of_numpy(tiny: Tiny, tmp_path: Path) -> None:
    path = write(tmp_path / "tiny.gguf", tiny)
    rows, *others = (load_gguf(path, backend=name).model.logits(IDS[:40], last=40) for name in BACKENDS)
    # 8-bit activations, random weights: a wrong rotation or bias gives differences of the size of the rows
    assert all(np.abs(rows - other).mean() < 0.1 * np.abs(rows).mean() for other in others)
