"""The compiled graphs on disk, the packing of weights in them, and the check of rows on this processor."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from engine.errors import BackendError, ModelFileError
from engine.folders import cache_folder
from engine.models import catalog, compiled, onnx_session, row_check
from engine.models.gguf_loader import load_gguf
from engine.models.onnx_graph import BUILDING
from engine.models.packed import pack
from tests.engine.models.tiny_files import Tiny, write

WIDE = Tiny(head_dim=16, n_rope_dims=16)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "tiny.gguf", WIDE)


def graphs() -> list[Path]:
    return sorted(folder for folder in (cache_folder() / "graphs").iterdir() if folder.is_dir())


def test_a_graph_is_built_once_and_told_of(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, int, int]] = []
    load_gguf(path, backend="ort", progress=lambda *parts: told.append(parts))
    assert told == [(BUILDING, done, 3) for done in range(4)]
    monkeypatch.setattr(compiled, "build_graph", None)
    load_gguf(path, backend="ort", progress=lambda *parts: told.append(parts))
    assert len(told) == 4
    assert len(graphs()) == 1


def test_a_graph_whose_building_was_interrupted_is_never_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(doing: str, done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_gguf(path, backend="ort", progress=interrupt)
    assert graphs() == []
    load_gguf(path, backend="ort")
    (whole,) = graphs()
    killed = whole.with_name(f"{whole.name}.part")  # what a process leaves that was killed while it built
    whole.rename(killed)
    (killed / compiled.GRAPH).write_bytes(b"half")
    assert load_gguf(path, backend="ort").model.logits([1, 2]).shape == (1, 271)
    assert graphs() == [whole]


def test_a_file_of_another_content_or_another_format_gets_a_graph_of_its_own(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_gguf(path, backend="ort")
    write(path, Tiny(head_dim=16, n_rope_dims=16, n_layers=1))
    load_gguf(path, backend="ort")
    before = graphs()
    assert len(before) == 2
    monkeypatch.setattr(compiled, "FORMAT", 999)
    load_gguf(path, backend="ort")
    assert len(graphs()) == 2  # the graph of the older format has gone
    assert any("-999-" in folder.name for folder in graphs())


def test_what_was_compiled_goes_with_the_model(path: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other.gguf", Tiny(head_dim=32, n_rope_dims=16))
    catalog.add(path, "mine")
    catalog.load("mine", backend="ort")
    catalog.load(other, backend="ort")
    assert len(graphs()) == 2
    catalog.remove("mine")
    (left,) = graphs()
    catalog.load(other, backend="ort")
    assert graphs() == [left]
    assert path.exists()


def test_a_damaged_graph_is_told_of_by_its_place(path: Path) -> None:
    load_gguf(path, backend="ort")
    (graphs()[0] / compiled.GRAPH).write_bytes(b"damaged")
    with pytest.raises(BackendError, match="delete the folder"):
        load_gguf(path, backend="ort")


def test_a_file_that_is_no_model_is_refused_alike(tmp_path: Path) -> None:
    tensors = WIDE.tensors()
    path = write(tmp_path / "more.gguf", WIDE, tensors | {"blk.0.odd.weight": np.ones(4, np.float32)})
    for backend in ("numpy", "ort", "auto"):  # numba: test_jit_program.py
        with pytest.raises(ModelFileError, match=r"1 tensors that a llama model .* blk\.0\.odd\.weight"):
            catalog.load(path, backend=backend)
    assert graphs() == []


def test_packing_is_off_by_at_most_half_a_step_of_the_largest() -> None:
    matrix = np.random.default_rng(0).normal(size=(5, 70)).astype(np.float32)
    matrix[2] = 0
    numbers, scales = pack(matrix)
    assert (numbers.shape, scales.shape) == ((5, 3, 32), (5, 3))
    unpacked = ((numbers.astype(np.float32) - 128) * scales[..., None]).reshape(5, -1)
    assert (unpacked[:, 70:] == 0).all()
    steps = np.repeat(scales, 32, axis=1)[:, :70]
    assert (np.abs(unpacked[:, :70] - matrix) <= 0.501 * steps).all()


def test_packing_eight_bits_is_exact() -> None:
    rng = np.random.default_rng(1)
    numbers = rng.integers(-127, 128, (4, 64)).astype(np.float32)
    numbers[:, ::32] = 127
    packed, scales = pack(numbers * np.float32(0.0625))
    assert np.array_equal((packed.astype(np.float32) - 128).reshape(4, 64), numbers)
    assert (scales == 0.0625).all()


def test_a_processor_on_which_rows_differ_is_noted_and_believed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(row_check, "_compare", lambda model: False)
        assert not load_gguf(path, backend="ort").model.exact_rows
    assert not catalog.load(path, backend="ort", exact_rows=True).model.exact_rows  # noted: not tried again
    assert list(json.loads((graphs()[0] / row_check.NOTES).read_text()).values()) == [False]
    monkeypatch.setattr(row_check, "processor", lambda: "another one")
    assert load_gguf(path, backend="ort").model.exact_rows


def test_the_check_sees_rows_that_differ(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = onnx_session.Buffers.run

    def worse_alone(self: object, ids: np.ndarray, *arguments: object, **settings: object) -> np.ndarray:
        rows = run(self, ids, *arguments, **settings)
        return np.nextafter(rows, np.float32(np.inf)) if len(ids) == 1 else rows

    monkeypatch.setattr(onnx_session.Buffers, "run", worse_alone)
    assert not load_gguf(path, backend="ort").model.exact_rows


def test_a_note_that_cannot_be_read_is_made_again(path: Path) -> None:
    load_gguf(path, backend="ort")
    note = graphs()[0] / row_check.NOTES
    for damage in ("", "[]", "{"):
        note.write_text(damage)
        assert load_gguf(path, backend="ort").model.exact_rows
        assert list(json.loads(note.read_text()).values()) == [True]
