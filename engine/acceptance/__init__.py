"""What judges: one file per acceptance rule, the protocol in `base`."""

from engine.acceptance.base import AcceptanceRule
from engine.acceptance.exact import ExactRejection, residual
from engine.acceptance.naive import NaiveThreshold
from engine.acceptance.tree import TreeRule
from engine.acceptance.tree_distinct import TreeDistinct
from engine.acceptance.tree_independent import TreeIndependent
from engine.acceptance.tree_match import TreeMatch

__all__ = [
    "AcceptanceRule",
    "ExactRejection",
    "NaiveThreshold",
    "TreeDistinct",
    "TreeIndependent",
    "TreeMatch",
    "TreeRule",
    "residual",
]
