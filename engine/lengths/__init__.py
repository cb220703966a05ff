"""How far to guess: one file per policy, the protocol in `base`, what a policy may look at in `prospect`."""

from engine.lengths.adaptive import AdaptiveThreshold
from engine.lengths.base import ALWAYS, MAX_DRAFT_LENGTH, Always, GoOn, LengthPolicy, NamedPolicy, StepOutcome
from engine.lengths.confident import Confident
from engine.lengths.cost_aware import CostAware
from engine.lengths.entropy import EntropyBound
from engine.lengths.fixed import FixedLength
from engine.lengths.heuristic import Heuristic
from engine.lengths.prospect import Prospect, spread
from engine.lengths.threshold import ConfidenceThreshold

__all__ = [
    "ALWAYS",
    "MAX_DRAFT_LENGTH",
    "AdaptiveThreshold",
    "Always",
    "ConfidenceThreshold",
    "Confident",
    "CostAware",
    "EntropyBound",
    "FixedLength",
    "GoOn",
    "Heuristic",
    "LengthPolicy",
    "NamedPolicy",
    "Prospect",
    "StepOutcome",
    "spread",
]
