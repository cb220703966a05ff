"""What guesses: one file per drafter, the protocol in `base`."""

from engine.drafters.base import Drafter
from engine.drafters.model import ModelDrafter
from engine.drafters.ngram import PromptLookup
from engine.drafters.none import NoDraft

__all__ = ["Drafter", "ModelDrafter", "NoDraft", "PromptLookup"]
