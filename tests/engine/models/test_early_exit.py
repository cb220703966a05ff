"""A model's first layers as its draft: their rows, and the keys and values that both write to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.decode import decode
from engine.drafters import ModelDrafter, NoDraft
from engine.errors import SettingError
from engine.lengths import FixedLength
from engine.models.backends import can_run
from engine.models.base import LayeredModel
from engine.models.early_exit import EarlyExit, exit_layers
from engine.models.gguf_loader import load_gguf
from engine.sampling import Sampling
from engine.values import Finished, Step
from tests.engine.models.tiny_files import TOKENS, Tiny, write

SHAPE = Tiny(n_layers=5, width=64, head_dim=16, n_rope_dims=16, ffn_width=64, tied=False)
IDS = np.random.default_rng(3).integers(0, len(TOKENS), 60).tolist()


@pytest.fixture(params=["numpy", "ort", "numba"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> LayeredModel:
    if not can_run(request.param):
        pytest.skip(f"{request.param} does not run here")
    model = load_gguf(write(tmp_path / "tiny.gguf", SHAPE), backend=request.param).model
    assert isinstance(model, LayeredModel)
    return model


def cut_short(folder: Path, n_layers: int, backend: str) -> LayeredModel:
    """The first layers, norm and head as a model file of their own."""
    tensors = {
        name: array
        for name, array in SHAPE.tensors().items()
        if not name.startswith("blk.") or int(name.split(".")[1]) < n_layers
    }
    shape = Tiny(**{**SHAPE.__dict__, "n_layers": n_layers})
    return load_gguf(write(folder / f"first-{n_layers}.gguf", shape, tensors), backend=backend).model


@pytest.mark.parametrize("n_layers", [1, 2, 4])
def test_its_rows_are_those_of_a_model_that_ends_there(model: LayeredModel, n_layers: int, tmp_path: Path) -> None:
    short = cut_short(tmp_path, n_layers, model.backend)
    early = EarlyExit(model, n_layers)
    for end, last in ((40, 40), (41, 1), (45, 3), (30, 2), (60, 34)):
        expected = short.fork().logits(IDS[:end], last)
        assert np.abs(early.logits(IDS[:end], last) - expected).max() < 1e-4


def test_target_and_early_exit_asked_in_any_order_give_the_rows_of_a_fresh_model(model: LayeredModel) -> None:
    """Both write to the first layers' keys and values: what one has overwritten the other must not take for its own."""
    fresh = {None: model.fork(), 2: EarlyExit(model.fork(), 2), 3: EarlyExit(model.fork(), 3)}
    shared = {None: model, 2: EarlyExit(model, 2), 3: EarlyExit(model, 3)}
    rng = np.random.default_rng(0)
    context = IDS[:4]
    for _ in range(120):
        context = context[: rng.integers(1, len(context) + 1)]
        context = [*context, *rng.integers(0, len(TOKENS), rng.integers(1, 6)).tolist()][:60]
        which = (None, 2, 3)[rng.integers(3)]
        last = int(rng.integers(1, len(context) + 1))
        expected = fresh[which].fork().logits(context, last)
        assert np.abs(shared[which].logits(context, last) - expected).max() < 1e-4, (which, context)


def test_it_needs_no_prefill_of_its_own(model: LayeredModel) -> None:
    early = EarlyExit(model, 2)
    fed = watch_what_is_fed(model)
    model.logits(IDS[:40])
    assert sum(fed) == 40
    fed.clear()
    early.logits(IDS[:41])
    early.logits(IDS[:42])
    early.logits(IDS[:43])
    assert fed == [1, 1, 1]
    fed.clear()
    model.logits(IDS[:43], last=3)  # the verification goes through all layers
    early.logits(IDS[:44])  # and what it kept is there for the next draft
    assert fed == [3, 1]


def watch_what_is_fed(model: LayeredModel) -> list[int]:
    """How many rows every pass through the layers has, from now on."""
    fed: list[int] = []
    if model.backend == "numpy":
        through = model._through
        model._through = lambda ids, start, stop, *more: fed.append(stop - start) or through(ids, start, stop, *more)
    elif model.backend == "numba":
        run = model._run
        model._run = lambda piece, *more: fed.append(len(piece)) or run(piece, *more)
    else:
        run = model._run
        model._run = lambda buffers, piece, *more: fed.append(len(piece)) or run(buffers, piece, *more)
    return fed


def test_all_but_nothing_left_out_is_refused(model: LayeredModel) -> None:
    assert exit_layers(model) == 3
    for n_layers in (-1, 5, 6):
        with pytest.raises(SettingError, match=f"exit layer is {n_layers}; .* from 1 to 4"):
            EarlyExit(model, n_layers)


def test_a_model_that_is_asked_itself_refuses_layers_that_are_not_there(model: LayeredModel) -> None:
    for n_layers in (-1, 0, 6):
        with pytest.raises(SettingError, match=f"behind its first {n_layers} layers; it has 5, so ask for 1 to 5"):
            model.early_logits(IDS[:3], 1, n_layers)
    all_layers = model.fork().logits(IDS[:3])
    np.testing.assert_allclose(model.early_logits(IDS[:3], 1, 5), all_layers, atol=1e-5)


@pytest.mark.parametrize("n_layers", [0, 1, 5])
def test_a_model_of_one_layer_has_no_early_exit(n_layers: int, tmp_path: Path) -> None:
    model = cut_short(tmp_path, 1, "numpy")
    with pytest.raises(SettingError, match="has one layer, and early exit needs a model of two or more"):
        EarlyExit(model, n_layers)


def test_of_two_layers_the_first_is_the_only_exit(tmp_path: Path) -> None:
    model = cut_short(tmp_path, 2, "numpy")
    assert exit_layers(model) == exit_layers(model, 1) == 1
    with pytest.raises(SettingError, match=r"exit layer is 2; .* 2 layers, so it must be from 1 to 1"):
        EarlyExit(model, 2)


@pytest.mark.parametrize("n_layers", [1, 4])
@pytest.mark.parametrize("draft_length", [0, 1, 3, 8])
def test_greedy_text_is_the_plain_text(model: LayeredModel, n_layers: int, draft_length: int) -> None:
    plain = ids_and_accepted(model.fork(), NoDraft(), 0)[0]
    target = model.fork()
    drafter = ModelDrafter(EarlyExit(target, n_layers), target.vocab_size)
    ids, n_accepted = ids_and_accepted(target, drafter, draft_length)
    assert ids == plain
    if n_layers == 4 and draft_length:
        assert n_accepted > 0


def ids_and_accepted(target: LayeredModel, drafter, draft_length: int) -> tuple[tuple[int, ...], int]:
    events = list(
        decode(
            target,
            drafter,
            IDS[:8],
            lengths=FixedLength(draft_length),
            sampling=Sampling(temperature=0),
            max_tokens=30,
        )
    )
    assert isinstance(events[-1], Finished)
    assert not events[-1].error
    return events[-1].ids, sum(event.n_accepted for event in events if isinstance(event, Step))
