"""What judges: one file per acceptance rule, the protocol in `base`."""

from engine.acceptance.base import AcceptanceRule
from engine.acceptance.exact import ExactRejection, residual
from engine.acceptance.naive import NaiveThreshold

__all__ = ["AcceptanceRule", "ExactRejection", "NaiveThreshold", "residual"]
