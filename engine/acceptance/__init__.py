"""What judges: one file per acceptance rule, the protocol in `base`."""

from engine.acceptance.base import AcceptanceRule
from engine.acceptance.block import BlockVerification
from engine.acceptance.ensemble import Ensemble
from engine.acceptance.exact import ExactRejection, residual
from engine.acceptance.gumbel import GumbelMatch
from engine.acceptance.lenience import Lenience
from engine.acceptance.naive import NaiveThreshold
from engine.acceptance.sample_match import SampleMatch
from engine.acceptance.tree import TreeRule
from engine.acceptance.tree_distinct import TreeDistinct
from engine.acceptance.tree_independent import TreeIndependent
from engine.acceptance.tree_match import TreeMatch
from engine.acceptance.typical import TypicalAcceptance

__all__ = [
    "AcceptanceRule",
    "BlockVerification",
    "Ensemble",
    "ExactRejection",
    "GumbelMatch",
    "Lenience",
    "NaiveThreshold",
    "SampleMatch",
    "TreeDistinct",
    "TreeIndependent",
    "TreeMatch",
    "TreeRule",
    "TypicalAcceptance",
    "residual",
]
