"""The ramp and its noisy copy: functions of the context, the same on every machine."""

import subprocess
import sys

import numpy as np
import pytest

from engine.errors import SettingError
from engine.models.noisy import load_noisy
from engine.models.numbers import NumberTokenizer


def test_target_is_the_ramp_rolled_by_the_last_id():
    row = load_noisy().model.logits([5, 7])[0]
    assert row.argmax() == 6
    assert row.argmin() == 7
    assert np.ptp(row) == 10


def test_draft_is_the_target_plus_noise_of_the_whole_context():
    pair = load_noisy()
    noise = [pair.partner.logits([i, 7])[0] - pair.model.logits([i, 7])[0] for i in range(50)]
    assert len({row.tobytes() for row in noise}) == 50
    assert abs(float(np.mean(noise))) < 0.1  # 2500 draws: standard error 0.02
    assert float(np.std(noise)) == pytest.approx(1, abs=0.1)


def test_draft_is_the_same_in_every_process():
    code = "from engine.models.noisy import load_noisy; print(load_noisy().partner.logits([1, 2, 3]).sum())"
    sums = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert sums == {f"{load_noisy().partner.logits([1, 2, 3]).sum()}\n"}


def test_several_rows_are_the_rows_of_the_prefixes():
    draft = load_noisy().partner
    rows = draft.logits([4, 8, 15], last=3)
    np.testing.assert_array_equal(rows[0], draft.logits([4])[0])
    np.testing.assert_array_equal(rows[2], draft.logits([4, 8, 15])[0])


def test_numbers_are_their_own_ids_and_words_are_hashed():
    numbers = NumberTokenizer(50)
    assert numbers.encode(" 0 7\n49 ") == [0, 7, 49]
    hashed = numbers.encode("50 hello \u4f60\u597d -1 \u00b2")
    assert all(0 <= token < 50 for token in hashed)
    assert hashed[:2] == NumberTokenizer(50).encode("50 hello")
    assert numbers.encode("") == []


def test_numbers_have_no_end_and_no_chat():
    numbers = NumberTokenizer(50)
    assert numbers.end_tokens == frozenset()
    assert not any(numbers.is_control(token) for token in range(50))
    with pytest.raises(SettingError, match="no chat template"):
        numbers.chat("hello")
    with pytest.raises(SettingError, match="at least 1"):
        NumberTokenizer(0)
