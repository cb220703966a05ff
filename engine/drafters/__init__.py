"""What guesses: one file per drafter, the protocol in `base`."""

from engine.drafters.base import Drafter
from engine.drafters.combined import LookupFirst
from engine.drafters.eagle import EagleDrafter
from engine.drafters.model import ModelDrafter
from engine.drafters.ngram import PromptLookup
from engine.drafters.none import NoDraft
from engine.drafters.tree import TreeDrafter

__all__ = ["Drafter", "EagleDrafter", "LookupFirst", "ModelDrafter", "NoDraft", "PromptLookup", "TreeDrafter"]
