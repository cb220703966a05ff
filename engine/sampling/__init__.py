"""From logits to a law, from a law to a token, and the random numbers in between.

`law` is the one place where penalties, temperature, min-p, top-k and top-p are applied: the
target's rows, the draft's rows and the tests all go through it, so that both sides of every
acceptance test speak of the same processed distribution.
"""

from engine.sampling.law_kinds import Dense, Law, OneHot, Sparse, Weighted
from engine.sampling.noise import Noise, Purpose
from engine.sampling.peaks import FoundPeaks, Peaks
from engine.sampling.penalties import penalised
from engine.sampling.processing import law, law_of_scores, log_probability
from engine.sampling.rows import Rows
from engine.sampling.settings import ARITHMETICS, Arithmetic, Sampling

__all__ = [
    "ARITHMETICS",
    "Arithmetic",
    "Dense",
    "FoundPeaks",
    "Law",
    "Noise",
    "OneHot",
    "Peaks",
    "Purpose",
    "Rows",
    "Sampling",
    "Sparse",
    "Weighted",
    "law",
    "law_of_scores",
    "log_probability",
    "penalised",
]
