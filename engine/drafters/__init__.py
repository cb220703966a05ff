"""What guesses: one file per drafter, the protocol in `base`."""

from engine.drafters.base import Drafter, LearnsFromOutputs, LearnsFromRows
from engine.drafters.combined import LookupFirst
from engine.drafters.eagle import EagleDrafter
from engine.drafters.function import CallableDrafter
from engine.drafters.model import ModelDrafter
from engine.drafters.ngram import PromptLookup
from engine.drafters.none import NoDraft
from engine.drafters.recycling import TokenRecycling
from engine.drafters.suffix import SuffixDecoding
from engine.drafters.suffix_first import SuffixFirst
from engine.drafters.tree import TreeDrafter

__all__ = [
    "CallableDrafter",
    "Drafter",
    "EagleDrafter",
    "LearnsFromOutputs",
    "LearnsFromRows",
    "LookupFirst",
    "ModelDrafter",
    "NoDraft",
    "PromptLookup",
    "SuffixDecoding",
    "SuffixFirst",
    "TokenRecycling",
    "TreeDrafter",
]
