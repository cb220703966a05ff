"""The best token of a row, and how far one is ahead of all others, against numpy."""

import numpy as np
import pytest

from engine.sampling import FoundPeaks, Peaks, Rows, Sampling


@pytest.mark.parametrize("n_tokens", [1, 2, 255, 256, 257, 1024])
@pytest.mark.parametrize("kind", ["different", "ties"])
def test_peaks_are_those_of_a_sorted_row(n_tokens: int, kind: str) -> None:
    rng = np.random.default_rng(n_tokens)
    logits = rng.normal(size=(3, n_tokens)) if kind == "different" else rng.integers(0, 4, (3, n_tokens)).astype(float)
    peaks = Peaks(logits)
    assert peaks.tokens == logits.argmax(axis=1).tolist()  # the lowest on a tie
    for index, row in enumerate(logits):
        for token in {0, n_tokens // 2, n_tokens - 1, peaks.tokens[index]}:
            others = np.delete(row, token)
            assert peaks.lead(index, token) == (row[token] - others.max() if len(others) else np.inf)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 300, 511])
def test_the_best_of_a_row_that_is_not_finite_is_not_finite(bad: float, place: int) -> None:
    logits = np.zeros((1, 512), np.float32)
    logits[0, place] = bad
    assert not np.isfinite(Peaks(logits).values[0])
    assert not np.isfinite(Peaks(np.full((1, 512), -np.inf)).values[0])


def test_margins_are_the_same_with_peaks_and_without() -> None:
    logits = np.random.default_rng(1).normal(size=(2, 512)).astype(np.float32)
    sampling = Sampling(temperature=0)
    known, found = Rows(logits, sampling, peaks=Peaks(logits)), Rows(logits, sampling)
    for index in range(2):
        for token in (0, 77, known.law(index).token, 511):
            assert known.margin(index, token) == found.margin(index, token)
    assert Rows(np.array([[0.0, -np.inf]]), sampling).margin(0, 0) is None  # no other is possible


def test_peaks_that_a_model_has_found_are_used_as_they_are() -> None:
    logits = np.array([[0.5, 2.0, 1.5], [3.0, 3.0, -1.0]])
    rows = Rows(logits, Sampling(temperature=0), peaks=FoundPeaks(logits, [1, 0], [2.0, 3.0], [1.5, 3.0]))
    assert [rows.law(index).token for index in range(2)] == [1, 0]
    assert [rows.margin(0, 1), rows.margin(0, 0), rows.margin(1, 0), rows.margin(1, 2)] == [0.5, -1.5, 0.0, -4.0]
