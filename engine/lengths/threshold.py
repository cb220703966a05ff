"""Stop behind a token that the draft was not confident of; the token is kept and verified."""

from __future__ import annotations

from engine.errors import SettingError
from engine.lengths.base import NamedPolicy, checked_length
from engine.lengths.prospect import Prospect

__all__ = ["ConfidenceThreshold", "checked_share"]


class ConfidenceThreshold(NamedPolicy):
    """Stop behind a token whose probability under the draft is below a threshold; the token stays in the draft.

    After `assistant_confidence_threshold` of transformers, the simplified descendant of DISCO (Mamou et
    al., arXiv 2405.04304). To drop the token instead would bias the text. At temperature 0 the probability
    is that of the softmax of the draft's logits. A lookup has no such law and goes to the draft length.

    Parameters
    ----------
    length : int, default 4
        The most tokens to draft, 0 to 32.
    threshold : float, default 0.4
        From 0 to 1.

    Raises
    ------
    SettingError
        If a value is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from engine.sampling import Dense
    >>> policy = ConfidenceThreshold(4, 0.4)
    >>> prospect = Prospect(0, law=lambda: Dense(np.array([0.7, 0.3])))
    >>> policy.behind(prospect, token=0), policy.behind(prospect, token=1), policy.behind(Prospect(0), token=1)
    (True, False, True)
    """

    name = "confidence-threshold"
    guarantee = "Stops behind a token that the draft gave less than the threshold; that token is still verified."
    source = "transformers, assistant_confidence_threshold; Mamou et al. 2024, arXiv 2405.04304"
    needs = "the draft's law"

    def __init__(self, length: int = 4, threshold: float = 0.4) -> None:
        self.length = checked_length(length)
        self.threshold = checked_share("the confidence threshold", threshold)

    def behind(self, prospect: Prospect, token: int) -> bool:
        """Whether the token was probable enough."""
        prob = prospect.prob(token)
        if prob is None or prob >= self.threshold:
            return True
        self.reason = f"the draft gave its last token {prob:.2f}, less than {self.threshold:g}"
        return False


def checked_share(name: str, value: float) -> float:
    """A number from 0 to 1, or a `SettingError` that names it."""
    if not 0 <= value <= 1:
        raise SettingError(f"{name} is {value}; it must be from 0 to 1")
    return value
