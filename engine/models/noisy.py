"""The smallest pair: a target that is a rolled ramp, and a draft that sees it through noise.

There is no text and no training in it, 50 ids and two lines of arithmetic, so it shows how any
function becomes a model (`CallableModel`) and how noise turns into rejections. The target's
scores rise along a ramp that is rolled by the last id: after id 7 the most probable next id is 6
and the least probable one is 7. The draft has the same scores plus normal noise. The noise is
a function of the whole context, so each model gives the same rows whatever was asked before.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from engine.models.base import LoadedModel
from engine.models.callable import CallableModel
from engine.models.numbers import NumberTokenizer

__all__ = ["load_noisy"]

VOCAB_SIZE = 50
RAMP_HEIGHT = 10.0  # natural-log units from the least to the most probable id
NOISE_SCALE = 1.0  # standard deviation, in the same units

_RAMP = np.linspace(0.0, RAMP_HEIGHT, VOCAB_SIZE)


def load_noisy() -> LoadedModel:
    """The ramp as target with its noisy copy as partner.

    Examples
    --------
    >>> pair = load_noisy()
    >>> pair.model.logits([3, 7]).argmax(), pair.model.vocab_size
    (np.int64(6), 50)
    >>> bool((pair.partner.logits([3, 7]) == pair.partner.logits([3, 7])).all())
    True
    """
    target = CallableModel(_target, VOCAB_SIZE, name="noisy")
    draft = CallableModel(_draft, VOCAB_SIZE, name="noisy-draft")
    return LoadedModel(target, NumberTokenizer(VOCAB_SIZE), partner=draft)


def _target(ids: list[int]) -> NDArray[np.float64]:
    return np.roll(_RAMP, ids[-1])


def _draft(ids: list[int]) -> NDArray[np.float64]:
    digest = hashlib.blake2b(np.asarray(ids, dtype="<i8").tobytes(), digest_size=16).digest()
    noise = np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))
    return _target(ids) + noise.normal(scale=NOISE_SCALE, size=VOCAB_SIZE)
