"""The slots that rows see: in the order of the text, a row's own last, and zeros behind for what is read too."""

from __future__ import annotations

import numpy as np
import pytest

import tests.engine.models.jit_backend  # noqa: F401
from engine.models.jit.attention import MORE_SLOTS
from engine.models.jit.slots import along_branches, one_after_the_other


@pytest.mark.parametrize("start", [0, 1, 9])
@pytest.mark.parametrize("n_rows", [1, 2, 5])
def test_rows_one_after_the_other_see_all_slots_up_to_their_own(start: int, n_rows: int) -> None:
    slots, n_slots = one_after_the_other(start, n_rows)
    assert (slots.dtype, n_slots.dtype) == (np.int32, np.int64)
    assert slots.tolist() == [*range(start + n_rows), *[0] * MORE_SLOTS]
    assert [slots[:seen].tolist() for seen in n_slots] == [list(range(start + row + 1)) for row in range(n_rows)]


@pytest.mark.parametrize("start", [0, 1, 9])
def test_rows_of_a_tree_see_what_is_before_it_and_their_own_way(start: int) -> None:
    ways = [[0], [0, 1], [0, 2], [0, 1, 3], [0, 2, 4]]
    slots, n_slots = along_branches(start, ways)
    assert (slots.dtype, n_slots.dtype) == (np.int32, np.int64)
    assert slots.flags.c_contiguous
    assert slots.shape == (len(ways), start + len(ways) + MORE_SLOTS)
    for row, (way, own, seen) in enumerate(zip(ways, slots, n_slots, strict=True)):
        assert own[:seen].tolist() == [*range(start), *(start + place for place in way)]
        assert own[seen - 1] == start + row
        assert not own[seen:].any()
        assert len(own) - seen >= MORE_SLOTS


@pytest.mark.parametrize("start", [0, 9])
def test_a_tree_that_is_a_chain_has_the_slots_of_a_block(start: int) -> None:
    slots, n_slots = along_branches(start, [list(range(row + 1)) for row in range(4)])
    block, n_of_block = one_after_the_other(start, 4)
    np.testing.assert_array_equal(n_slots, n_of_block)
    for own, seen in zip(slots, n_slots, strict=True):
        np.testing.assert_array_equal(own[:seen], block[:seen])
