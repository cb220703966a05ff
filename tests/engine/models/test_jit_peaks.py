"""The best token of a row and the highest of the others, as the compiled code finds them, against a sorted row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tests.engine.models.jit_backend  # noqa: F401
from engine.models.base import PeakedModel
from engine.models.gguf_loader import load_gguf
from engine.models.jit.peaks import find_peaks
from engine.sampling import Peaks
from tests.engine.models.tiny_files import Tiny, write


@pytest.mark.parametrize("n", [1, 2, 255, 256, 257, 1000, 49152])
@pytest.mark.parametrize("kind", ["different", "ties"])
def test_peaks_are_those_of_a_sorted_row(n: int, kind: str) -> None:
    rng = np.random.default_rng(n)
    for _ in range(20):
        row = (rng.normal(size=n) if kind == "different" else rng.integers(0, 4, n)).astype(np.float32)
        two = np.empty(2, np.float32)
        place = find_peaks(row, two)
        assert place == row.argmax()  # the lowest on a tie
        assert two.tolist() == [row.max(), np.delete(row, place).max() if n > 1 else -np.inf]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 300, 599])
def test_a_row_with_a_number_that_is_none_says_so(bad: float, place: int) -> None:
    row, two = np.zeros(600, np.float32), np.empty(2, np.float32)
    row[place] = bad
    find_peaks(row, two)
    assert np.isnan(two[0])


def test_a_model_knows_the_peaks_of_the_rows_that_it_gave_last(tmp_path: Path) -> None:
    model = load_gguf(write(tmp_path / "tiny.gguf", Tiny()), backend="numba").model
    assert isinstance(model, PeakedModel)
    context = [1, 2, 3, 4, 5]
    for n_rows in (1, 2, 5):
        rows = model.logits(context, n_rows)
        found, expected = model.peaks(rows), Peaks(rows)
        assert found is not None
        assert (found.tokens, found.values) == (expected.tokens, expected.values)
        for index in range(n_rows):
            for token in (found.tokens[index], 0):
                assert found.lead(index, token) == expected.lead(index, token)
        assert model.peaks(rows.copy()) is None
    tree = model.tree_logits(context, [6, 7], [-1, -1])
    assert model.peaks(rows) is None
    found = model.peaks(tree)
    assert found is not None
    assert found.tokens == tree.argmax(axis=1).tolist()
