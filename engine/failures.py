"""Where drafts fail: acceptance by kind of token and by position, the proposals most refused, the text shaded.

Everything comes from the events of one run. A token counts where it was *tested*: an unreached one
was never judged, and says nothing of how good the guess was. By kind and by proposal the siblings of a
tree count one by one; by position all siblings of a place count once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from engine.intervals import Rate, rate
from engine.metrics import PositionFigures, Tally, ratio
from engine.token_kinds import KINDS, TokenKind, kind_of
from engine.values import Decision, Event, Outcome, Started, Step

__all__ = ["Failures", "Instead", "KindFigures", "PositionRates", "RejectedProposal", "ShadedToken", "failures"]

MOST_PROPOSALS = 50
MOST_INSTEAD = 3


@dataclass(frozen=True, slots=True)
class KindFigures:
    """Drafted tokens of one kind (`engine.token_kinds`): how many, and how many of the tested ones were kept."""

    kind: TokenKind
    drafted: int
    acceptance: Rate


@dataclass(frozen=True, slots=True)
class PositionRates:
    """One draft position, from 1.

    Attributes
    ----------
    conditional : Rate
        Kept / tested: of the drafts that got as far as this position. Those that did not are censored:
        what would have become of their token is not known.
    survival : Rate
        Kept / drafted: of all drafts that proposed this position, whether it was reached or not.
    """

    position: int
    conditional: Rate
    survival: Rate


@dataclass(frozen=True, slots=True)
class Instead:
    """What the target gave in place of a refused proposal, and how often."""

    token: int
    text: str
    times: int


@dataclass(frozen=True, slots=True)
class RejectedProposal:
    """A token that was drafted and refused.

    Attributes
    ----------
    token, text
        The drafted token.
    kind : TokenKind
        That it was most often refused as.
    tested, rejected : int
        How often it was judged, and refused.
    draft_prob, target_prob : float or None
        Means over its refusals.
    instead : tuple of Instead
        The most frequent replacements, at most three.
    """

    token: int
    text: str
    kind: TokenKind
    tested: int
    rejected: int
    draft_prob: float | None
    target_prob: float | None
    instead: tuple[Instead, ...]


@dataclass(frozen=True, slots=True)
class ShadedToken:
    """An emitted token with the acceptance probability at its place.

    Attributes
    ----------
    step, position : int
        Where the decision is.
    text : str
    outcome : Outcome
        "rejected" for a recovered token.
    accept_prob : float or None
        Of the token drafted at this place: the one that is here, or the one that this one replaces.
        None where nothing was drafted (bonus, plain).
    refused : str
        Text of the proposal that this token replaces; empty if it replaces none.
    """

    step: int
    position: int
    text: str
    outcome: Outcome
    accept_prob: float | None
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Failures:
    """All of it. Kinds that never came up are left out; proposals are sorted by how often they were refused."""

    kinds: tuple[KindFigures, ...]
    positions: tuple[PositionRates, ...]
    proposals: tuple[RejectedProposal, ...]
    text: tuple[ShadedToken, ...]


@dataclass
class _Proposal:
    tested: int = 0
    kinds: Counter[TokenKind] = field(default_factory=Counter)
    refusals: list[Decision] = field(default_factory=list)


def failures(events: Iterable[Event]) -> Failures:
    """Look at a run.

    Parameters
    ----------
    events : iterable of Event
        Of one run, from its beginning: the prompt's end tells whether its first token starts a word.

    Examples
    --------
    >>> from engine.build import build
    >>> from engine.spec import RunSpec
    >>> found = failures(build(RunSpec(prompt="The draft", max_tokens=40, seed=0)).events())
    >>> [(row.kind, row.acceptance.successes, row.acceptance.trials) for row in found.kinds]
    [('start of word', 16, 32), ('punctuation', 1, 5)]
    """
    tally = Tally()
    before = ""
    drafted: Counter[TokenKind] = Counter()
    tested: Counter[TokenKind] = Counter()
    accepted: Counter[TokenKind] = Counter()
    proposals: defaultdict[tuple[int, str], _Proposal] = defaultdict(_Proposal)
    shaded: list[ShadedToken] = []
    for event in events:
        tally.add(event)
        if isinstance(event, Started):
            before = event.prompt_text
        if not isinstance(event, Step):
            continue
        guesses: list[str] = []  # the text that each drafted token ends, or what stands before it if it has none
        for decision in event.decisions:
            if decision.draft_token is not None:
                follows = len(guesses) - 1 if decision.parent is None else decision.parent
                guess_before = before if follows < 0 else guesses[follows]
                kind = kind_of(decision.draft_text, guess_before)
                guesses.append(decision.draft_text or guess_before)
                drafted[kind] += 1
                if decision.outcome != "unreached":
                    tested[kind] += 1
                    accepted[kind] += decision.accepted
                    _note(proposals[decision.draft_token, decision.draft_text], decision, kind)
            if decision.target_token is not None and not decision.discarded:
                shaded.append(_shaded(event.index, decision))
                before = decision.target_text or before
    return Failures(
        tuple(KindFigures(kind, drafted[kind], rate(accepted[kind], tested[kind])) for kind in KINDS if drafted[kind]),
        tuple(map(_position, tally.figures().per_position)),
        _most_rejected(proposals),
        tuple(shaded),
    )


def _note(proposal: _Proposal, decision: Decision, kind: TokenKind) -> None:
    proposal.tested += 1
    if not decision.accepted:
        proposal.kinds[kind] += 1
        proposal.refusals.append(decision)


def _shaded(step: int, decision: Decision) -> ShadedToken:
    return ShadedToken(
        step,
        decision.position,
        decision.target_text,
        decision.outcome,
        decision.accept_prob,
        decision.draft_text if decision.outcome == "rejected" else "",
    )


def _position(figures: PositionFigures) -> PositionRates:
    return PositionRates(
        figures.position, rate(figures.accepted, figures.tested), rate(figures.accepted, figures.drafted)
    )


def _most_rejected(proposals: dict[tuple[int, str], _Proposal]) -> tuple[RejectedProposal, ...]:
    refused = [(token, text, proposal) for (token, text), proposal in proposals.items() if proposal.refusals]
    refused.sort(key=lambda entry: (-len(entry[2].refusals), entry[2].tested, entry[0]))
    return tuple(_rejected(*entry) for entry in refused[:MOST_PROPOSALS])


def _rejected(token: int, text: str, proposal: _Proposal) -> RejectedProposal:
    refusals = proposal.refusals
    instead = Counter(
        (decision.target_token, decision.target_text) for decision in refusals if decision.target_token is not None
    )
    return RejectedProposal(
        token,
        text,
        proposal.kinds.most_common(1)[0][0],
        proposal.tested,
        len(refusals),
        _mean([decision.draft_prob for decision in refusals]),
        _mean([decision.target_prob for decision in refusals]),
        tuple(Instead(other, shown, times) for (other, shown), times in instead.most_common(MOST_INSTEAD)),
    )


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return ratio(sum(known), len(known))
