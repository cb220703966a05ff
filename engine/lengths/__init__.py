"""How far to guess: one file per policy, the protocol in `base`, what a policy may look at in `guess`."""

from engine.lengths.base import ALWAYS, MAX_DRAFT_LENGTH, Always, GoOn, LengthPolicy, Outcome
from engine.lengths.confident import Confident
from engine.lengths.fixed import FixedLength
from engine.lengths.prospect import Prospect, spread

__all__ = [
    "ALWAYS",
    "MAX_DRAFT_LENGTH",
    "Always",
    "Confident",
    "FixedLength",
    "GoOn",
    "LengthPolicy",
    "Outcome",
    "Prospect",
    "spread",
]
