"""How far to guess: one file per policy, the protocol in `base`."""

from engine.lengths.base import MAX_DRAFT_LENGTH, LengthPolicy
from engine.lengths.fixed import FixedLength

__all__ = ["MAX_DRAFT_LENGTH", "FixedLength", "LengthPolicy"]
