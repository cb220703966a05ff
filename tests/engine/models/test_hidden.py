"""The hidden rows that a model shows are those of the pass that gave its logits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.errors import PromptError, SettingError
from engine.models import transformer
from engine.models.base import HiddenModel
from engine.models.gguf_loader import load_gguf
from tests.engine.models.tiny_files import TOKENS, Tiny, write

TINY = Tiny(tied=False)
HEAD, NORM = TINY.tensors()["output.weight"], TINY.tensors()["output_norm.weight"]
IDS = np.random.default_rng(3).integers(0, len(TOKENS), 60).tolist()


@pytest.fixture
def model(tmp_path: Path) -> HiddenModel:
    model = load_gguf(write(tmp_path / "tiny.gguf", TINY)).model
    assert isinstance(model, HiddenModel)
    return model


def normed(rows: np.ndarray) -> np.ndarray:
    return rows / np.sqrt((rows**2).mean(axis=-1, keepdims=True) + 1e-5) * NORM


@pytest.mark.parametrize("asked_before", [False, True])
def test_the_final_row_times_the_head_is_the_logits(model: HiddenModel, asked_before: bool) -> None:
    if asked_before:
        model.hidden(IDS[:1])
    rows = model.logits(IDS[:20], last=6)
    hidden = model.hidden(IDS[:20], last=6)
    assert hidden.shape == (6, 1, TINY.width)
    assert np.abs(hidden[:, 0] @ HEAD.T - rows).max() < 2e-5


def test_the_tap_of_the_last_layer_normed_is_the_final_row(model: HiddenModel) -> None:
    hidden = model.hidden(IDS[:20], last=20, taps=(1, 0))
    assert hidden.shape == (20, 3, TINY.width)
    assert np.abs(normed(hidden[:, 1]) - hidden[:, 0]).max() < 1e-5
    assert np.abs(normed(hidden[:, 2]) - hidden[:, 0]).max() > 0.1


def test_what_logits_has_seen_is_not_computed_again(model: HiddenModel, monkeypatch: pytest.MonkeyPatch) -> None:
    model.hidden(IDS[:1], taps=(0,))
    model.logits(IDS[:30])
    fresh = model.fork().hidden(IDS[:34], last=34, taps=(0,))
    model.logits(IDS[:34], last=4)
    monkeypatch.setattr(transformer.Transformer, "_feed", None)
    for n_accepted in range(1, 5):
        hidden = model.hidden(IDS[: 30 + n_accepted], last=n_accepted + 1, taps=(0,))
        assert np.abs(hidden - fresh[29 : 30 + n_accepted]).max() < 1e-5


def test_another_context_gives_its_own_rows(model: HiddenModel) -> None:
    model.hidden(IDS[:30], last=3, taps=(0,))
    other = IDS[:10] + IDS[40:50]
    fresh = model.fork().hidden(other, last=5, taps=(0, 1))
    assert np.abs(model.hidden(other, last=5, taps=(0, 1)) - fresh).max() < 1e-5
    assert np.abs(model.logits(IDS[:30]) - model.fork().logits(IDS[:30])).max() < 1e-5


def test_rows_handed_out_stay_as_they_were(model: HiddenModel) -> None:
    first = model.hidden(IDS[:8], last=8)
    kept = first.copy()
    model.hidden(IDS[20:40])
    assert np.array_equal(first, kept)


def test_what_cannot_be_asked_is_refused(model: HiddenModel) -> None:
    with pytest.raises(SettingError, match="no layer 2; the layers go from 0 to 1"):
        model.hidden(IDS[:4], taps=(2,))
    with pytest.raises(PromptError, match="the last 5 rows of 4"):
        model.hidden(IDS[:4], last=5)
