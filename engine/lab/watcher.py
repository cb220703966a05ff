"""A rule that judges a run as the run's own rule does, and lets all the other rules look on at every step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log

from engine.acceptance.base import AcceptanceRule
from engine.errors import DraftError
from engine.evidence import Source
from engine.lab.first_token import first_token_bias
from engine.laws import top
from engine.sampling import Law, Noise, OneHot, Rows, Sampling
from engine.values import Draft, Verdict

__all__ = ["Judged", "TraceStep", "Watcher"]


@dataclass(frozen=True, slots=True)
class Judged:
    """What one rule makes of one step.

    Attributes
    ----------
    accepted : int
        Drafted tokens that it keeps with the run's draws.
    expected_tokens : float
        Tokens that the step gives on average over the draws, given its draft: kept ones and the target's own.
    bias : float or None
        See `engine.lab.first_token.Bias`; of the draft that the rule asks for. None where it is not known: with
        penalties, of a rule that compares raw logits, if it asks for a first token that was not drafted.
    bias_unknown : float
        To within this the bias is known.
    own_first : bool
        Whether the first token of the draft that the rule asks for is the one that is there.
    """

    accepted: int
    expected_tokens: float
    bias: float | None
    bias_unknown: float
    own_first: bool


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One step, by the names of the rules; a rule that cannot judge it is missing."""

    index: int
    context_length: int
    drafted: int
    judged: Mapping[str, Judged]


class Watcher:
    """A rule that judges as `own` does, and notes what all the rules make of each step.

    `drew` is whether any drafted token was a draw: none is at temperature 0, of a lookup, or of a rule that asks
    for the most probable ones.

    Parameters
    ----------
    own : AcceptanceRule
        Of the run.
    others : mapping of str to AcceptanceRule
    sampling : Sampling
        Of the draft.
    """

    def __init__(self, own: AcceptanceRule, others: Mapping[str, AcceptanceRule], *, sampling: Sampling) -> None:
        self._own = own
        self._rules = {own.name: own, **others}
        self._sampling = sampling
        self.name = own.name
        self.lossless = own.lossless
        self.guarantee = own.guarantee
        self.source = own.source
        self.needs = own.needs
        self.greedy_draft = own.greedy_draft
        self.noise: Callable[[int], Noise] = getattr(own, "noise", Noise)
        self.formula: str = getattr(own, "formula", "")
        self.replacement: Source = getattr(own, "replacement", "target")
        self.steps: list[TraceStep] = []
        self.refusals: dict[str, str] = {}
        self.drew = False

    def judge(self, draft: Draft, rows: Rows, *, noise: Noise, start: int) -> Verdict:
        """The own rule's verdict."""
        verdict = self._own.judge(draft, rows, noise=noise, start=start)
        self.drew |= not all(isinstance(drawn_from, OneHot) for drawn_from in draft.laws)
        judged: dict[str, Judged] = {}
        for name, rule in self._rules.items():
            try:
                given = verdict if rule is self._own else rule.judge(draft, rows, noise=noise, start=start)
                judged[name] = self._judged(rule, given, draft, rows)
            except DraftError as failure:
                self.refusals[name] = str(failure)
        self.steps.append(TraceStep(len(self.steps), start, len(draft.tokens), judged))
        return verdict

    def chances(self, draft: Draft, rows: Rows) -> list[tuple[float, Law]]:
        """The own rule's chances."""
        return self._own.chances(draft, rows)

    def _judged(self, rule: AcceptanceRule, verdict: Verdict, draft: Draft, rows: Rows) -> Judged:
        if not draft.tokens:
            return Judged(0, 1.0, 0.0, 0.0, True)
        expected = 1 + sum(n * chance for n, (chance, _) in enumerate(rule.chances(draft, rows)))
        drawn_from = draft.laws[0]
        own_first = True
        if rule.greedy_draft:
            (best,) = top(drawn_from, 1)
            drawn_from, own_first = OneHot(best), best == draft.tokens[0]
        if rule.needs == "draft logits" and self._sampling.penalises and drawn_from != OneHot(draft.tokens[0]):
            return Judged(verdict.n_accepted, expected, None, 0.0, own_first)  # the law is not that of the raw logits
        score = self._scores(draft) if rule.needs == "draft logits" else None
        bias = first_token_bias(rule, drawn_from, rows, score=score)
        return Judged(verdict.n_accepted, expected, bias.distance, bias.unknown, own_first)

    def _scores(self, draft: Draft) -> Callable[[int], float | None]:
        """Raw logits of first tokens, from that of the drafted one: their differences stand in the law."""
        law, token = draft.laws[0], draft.tokens[0]
        logit = None if draft.logits is None else draft.logits[0]

        def score(other: int) -> float | None:
            if logit is None or other == token:
                return logit
            return logit + self._sampling.temperature * log(law.prob(other) / law.prob(token))

        return score
