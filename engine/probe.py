"""The probe: it watches a step and keeps the evidence of it. It decides nothing and draws nothing of its own.

All of its cost is in here, and the loop counts it apart (`Step.probe_seconds`).
"""

from __future__ import annotations

import math
from functools import reduce
from numbers import Integral

from engine.acceptance.base import AcceptanceRule
from engine.acceptance.exact import ExactRejection, residual, tested
from engine.errors import SettingError
from engine.evidence import MOST_ALTERNATIVES, Alternative, Choice, Evidence, ExactTest, PositionEvidence, Source
from engine.gumbels import SharedGumbels
from engine.laws import below, entropy, highest, probs_at, top, total_variation
from engine.output import Output
from engine.sampling import Law, Noise, OneHot, Purpose, Rows
from engine.tree import branch, children
from engine.values import Draft, Verdict

__all__ = ["Probe", "check_probe"]


def check_probe(n_alternatives: int) -> None:
    """Refuse a number of alternatives that cannot be kept; 0 switches the probe off.

    Raises
    ------
    SettingError
        If it is no whole number from 0 to `MOST_ALTERNATIVES`.
    """
    if not (isinstance(n_alternatives, Integral) and 0 <= n_alternatives <= MOST_ALTERNATIVES):
        raise SettingError(
            f"the probe is {n_alternatives}; it must be a whole number from 0 (off) to {MOST_ALTERNATIVES}: "
            "how many alternatives to keep of every step"
        )


class Probe:
    """Makes the evidence of one run's steps.

    Parameters
    ----------
    n_alternatives : int
        Rows of alternatives to keep of a step, at least 1; the guesses and the token that was taken are kept
        in any case.
    rule : AcceptanceRule
        Its `formula` and `replacement` are shown, if it has them.
    output : Output
        Gives the texts of tokens.
    """

    def __init__(self, n_alternatives: int, rule: AcceptanceRule, output: Output) -> None:
        self._n_alternatives = n_alternatives
        self._formula: str = getattr(rule, "formula", "")
        self._replacement: Source = getattr(rule, "replacement", "")
        self._compares = rule.name != ExactRejection.name
        self._output = output

    def evidence(self, draft: Draft, rows: Rows, verdict: Verdict, *, noise: Noise, start: int) -> Evidence:
        """The evidence of a step that was judged, and of which nothing is committed yet.

        Parameters
        ----------
        draft, rows, noise, start
            As the rule got them; see `AcceptanceRule.judge`.
        verdict : Verdict
            What the rule said.
        """
        positions = []
        compares = self._compares and draft.parents is None  # the exact rule judges chains
        for position, test in zip(verdict.places, verdict.tested, strict=True):
            reached = position <= verdict.n_accepted  # a rule may test behind its refusal, the exact one does not
            exact = self._exact_test(position, draft, rows, noise, start) if compares and reached else None
            if test.terms or exact:
                positions.append(PositionEvidence(position, test.terms, exact))
        return Evidence(self._choice(draft, rows, verdict, noise, start), self._formula, tuple(positions))

    def _exact_test(self, position: int, draft: Draft, rows: Rows, noise: Noise, start: int) -> ExactTest:
        token, draft_law, target_law = draft.tokens[position], draft.laws[position], rows.law(position)
        draw = noise.uniform(start + position, Purpose.ACCEPT)
        test = tested(token, draft=draft_law, target=target_law, draw=draw)
        if not test.accepted:
            token = noise.draw(residual(target_law, draft_law), start + position, Purpose.TARGET)
        return ExactTest(test.accept_prob, draw, test.accepted, token, self._text(draft.tokens[:position], token))

    def _choice(self, draft: Draft, rows: Rows, verdict: Verdict, noise: Noise, start: int) -> Choice:
        before = branch(draft.links, verdict.last_kept)
        row, deciding = verdict.last_kept + 1, verdict.deciding
        position = len(draft.tokens) if deciding is None else deciding
        target = rows.law(row)
        siblings = [] if deciding is None else children(draft.links)[row]
        guess = draft.laws[siblings[0]] if siblings else None  # not yet without those that were refused
        left = verdict.law if siblings else None
        if siblings and left is None:
            left = reduce(residual, (draft.laws[sibling] for sibling in siblings), target)
        source: Source = "target" if left is None else self._replacement
        drawn_from = target if source == "target" else left if source else None
        on_a_line = drawn_from is not None and not isinstance(noise, SharedGumbels)
        behind = tuple(draft.tokens[place] for place in before)
        guesses = [draft.tokens[sibling] for sibling in siblings]
        tokens = self._alternatives(row, guesses, rows, verdict.token, [target, guess, left])
        target_probs, draft_probs, residual_probs = (
            None if law is None else [float(prob) for prob in probs_at(law, tokens)] for law in (target, guess, left)
        )
        assert target_probs is not None
        greedy = isinstance(target, OneHot)
        return Choice(
            position,
            source,
            None if drawn_from is None else drawn_from.prob(verdict.token),
            below(drawn_from, verdict.token) if on_a_line and drawn_from else None,
            noise.uniform(start + len(before), Purpose.TARGET) if on_a_line else None,
            entropy(target),
            None if guess is None else entropy(guess),
            None if guess is None else total_variation(target, guess),
            tuple(
                Alternative(
                    token,
                    self._text(behind, token),
                    target_probs[place],
                    None if draft_probs is None else draft_probs[place],
                    None if residual_probs is None else residual_probs[place],
                    _finite(rows.scores(row)[token]) if greedy else None,
                )
                for place, token in enumerate(tokens)
            ),
            _others(target_probs),
            None if draft_probs is None else _others(draft_probs),
            None if residual_probs is None else _others(residual_probs),
        )

    def _alternatives(
        self, index: int, guesses: list[int], rows: Rows, taken: int, laws: list[Law | None]
    ) -> list[int]:
        """The tokens to keep: the one that was taken, the guesses, and the most probable ones under any of the laws."""
        n, target = self._n_alternatives, rows.law(index)
        certain = list(dict.fromkeys([taken, *guesses]))
        if isinstance(target, OneHot):
            row = rows.scores(index)
            found = [int(token) for token in highest(row, n) if row[token] > -float("inf")]
            rank = {token: float(row[token]) for token in [*found, *certain]}
            order = rank
        else:
            known = [law for law in laws if law is not None]
            found = [token for law in known for token in top(law, n)]
            rank = {token: max(law.prob(token) for law in known) for token in found}
            order = {token: target.prob(token) for token in [*found, *certain]}
        best = sorted(set(found) - set(certain), key=lambda token: (-rank[token], token))
        kept = [*certain, *best[: max(0, n - len(certain))]]
        return sorted(kept, key=lambda token: (-order[token], token))

    def _text(self, before: tuple[int, ...], token: int) -> str:
        """How a token would be shown behind some others; "" for one without a text, which nobody may ever emit."""
        try:
            return self._output.peek([*before, token])[-1]
        except Exception:  # whatever a tokenizer of the user's raises for an id that it does not know
            return ""


def _finite(score: float) -> float | None:
    """None for the logit of a token that is banned."""
    return float(score) if math.isfinite(score) else None


def _others(probs: list[float]) -> float:
    """The mass that is not in `probs`."""
    return max(0.0, 1.0 - sum(probs))
