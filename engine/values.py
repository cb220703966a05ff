"""The frozen values that flow through a run: drafts, decisions, events.

A run is a stream of events: one `Started`, then for every step a `Drafted` (the guess, before
anybody has judged it) and a `Step` (its fate), and one `Finished`.  Events are small: numbers
and short strings, no rows of vocabulary size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from engine.evidence import Evidence, Term
from engine.sampling import Law
from engine.tree import branch, chain, depths

__all__ = [
    "Decision",
    "Draft",
    "Drafted",
    "Event",
    "FinishReason",
    "Finished",
    "Outcome",
    "Started",
    "Step",
    "Tested",
    "Tokens",
    "Verdict",
]

Tokens = Sequence[int]
Outcome = Literal["accepted", "rejected", "declined", "unreached", "bonus", "plain"]
FinishReason = Literal["end_token", "stop_string", "length", "context", "cancelled", "error"]


@dataclass(frozen=True, slots=True)
class Draft:
    """What a drafter proposes for one step: a chain of tokens, or a tree of them.

    Parameters
    ----------
    tokens : tuple of int
        The proposed ids, in order; empty for a plain step.
    laws : tuple of Law
        The law that each token was *actually drawn from*, one per token; a deterministic
        drafter hands over `OneHot(token)`. Of tokens that were drawn one after the other behind the same
        one, without replacement, each has a law that gives nothing to those before it.
    logits : tuple of float or None
        The draft's raw logit of each token, for rules that look at raw scores; None where the
        drafter has none.
    note : str
        Why fewer tokens than asked for came, in words for a user; empty if there is no reason.
    parents : tuple of int or None
        Of a tree: the place among `tokens` of the token that each one follows, -1 for none; a token stands
        behind the one that it follows, and the children of a token are tried in their order. None for a
        chain, in which each token follows the one before it.

    Examples
    --------
    Two guesses for the first place, and one behind the second of them:

    >>> from engine.sampling import OneHot
    >>> tree = Draft((5, 6, 7), (OneHot(5), OneHot(6), OneHot(7)), parents=(-1, -1, 1))
    >>> tree.depth, tree.links, tree.cut(2).links
    (2, (-1, -1, 1), (-1, -1))
    """

    tokens: tuple[int, ...] = ()
    laws: tuple[Law, ...] = ()
    logits: tuple[float, ...] | None = None
    note: str = ""
    parents: tuple[int, ...] | None = None

    def before(self, context: Tokens, row: int) -> list[int]:
        """The ids that stand before row `row` of the target: the context, and the drafted tokens on the way there.

        Examples
        --------
        >>> from engine.sampling import OneHot
        >>> Draft((7, 8), (OneHot(7), OneHot(8))).before([5, 6], 1)
        [5, 6, 7]
        >>> Draft((7, 8), (OneHot(7), OneHot(8)), parents=(-1, -1)).before([5, 6], 2)
        [5, 6, 8]
        """
        return [*context, *(self.tokens[place] for place in branch(self.links, row - 1))]

    def cut(self, n_tokens: int) -> Draft:
        """The first `n_tokens` tokens of this draft."""
        logits = None if self.logits is None else self.logits[:n_tokens]
        parents = None if self.parents is None else self.parents[:n_tokens]
        return Draft(self.tokens[:n_tokens], self.laws[:n_tokens], logits, self.note, parents)

    @property
    def links(self) -> tuple[int, ...]:
        """`parents`, of a chain too."""
        return chain(len(self.tokens)) if self.parents is None else self.parents

    @property
    def depth(self) -> int:
        """How many tokens may be kept at most."""
        return len(self.tokens) if self.parents is None else max(depths(self.parents), default=0)


@dataclass(frozen=True, slots=True)
class Tested:
    """How a rule judged one drafted token.

    `draw` is the uniform number held against `accept_prob`; None where the rule holds none against it. `terms` are
    the numbers that stand in the rule's `formula` and are no field here.
    """

    accepted: bool
    draft_prob: float
    target_prob: float
    accept_prob: float
    draw: float | None
    terms: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a rule says of a draft: the tokens it tested, in order, and the target's own token.

    What is kept is kept from the first token on. A rule may stop at the first token that is refused, or test those
    behind it too; none of them is kept. `token` is the replacement for the refused token, or, when every drafted
    token was kept, the extra token behind them.

    `law` is the law that `token` was drawn from, for a rule that draws it from neither the target's law nor the
    residual of the exact rule; else None.

    In a tree `nodes` names the token of each test, by its place in the draft. A test is followed by that of
    the next sibling if it was refused, and by that of the first child if it was kept; `token` comes
    when there is no such one. None stands for 0, 1, 2, ...
    """

    tested: tuple[Tested, ...]
    token: int
    law: Law | None = None
    nodes: tuple[int, ...] | None = None

    @property
    def n_accepted(self) -> int:
        """How many drafted tokens were kept."""
        return sum(test.accepted for test in self.tested)

    @property
    def places(self) -> tuple[int, ...]:
        """`nodes`, of a chain too."""
        return tuple(range(len(self.tested))) if self.nodes is None else self.nodes

    @property
    def last_kept(self) -> int:
        """The place of the last drafted token that was kept, -1 for none."""
        kept = [place for place, test in zip(self.places, self.tested, strict=True) if test.accepted]
        return kept[-1] if kept else -1

    @property
    def deciding(self) -> int | None:
        """The place of the drafted token that the target's own one replaces; None if it replaces none."""
        refused = [place for place, test in zip(self.places, self.tested, strict=True) if not test.accepted]
        if self.nodes is not None:
            refused = [place for place in refused if place == self.nodes[-1]]
        return refused[0] if refused else None


@dataclass(frozen=True, slots=True)
class Decision:
    """What happened at one position of a step.

    | outcome   | draft_token | target_token |
    |-----------|-------------|--------------|
    | accepted  | the guess   | the same     |
    | rejected  | the guess   | the recovered token that replaces it |
    | declined  | the guess   | None: refused in a tree, and a sibling was tried next |
    | unreached | the guess   | None: behind the refused token or beside the way, so never judged, or in vain |
    | bonus     | None        | the extra token after a draft, or a branch, that was kept whole |
    | plain     | None        | the token of a step that drafted nothing |

    Attributes
    ----------
    position : int
        Place in the step, from 0.
    discarded : bool
        `target_token` was cut off again by an end token, a stop string or a limit before it.
    draft_prob, target_prob : float or None
        Probability of `draft_token` under the law that the draft drew from and under the
        target's processed law; None where it was not judged.
    accept_prob, draw : float or None
        Acceptance probability and the uniform number held against it.
    emitted_prob : float or None
        Probability of `target_token` under the target's own processed law (never the residual).
    logprob : float or None
        Natural logarithm of the probability of `target_token` under the target's raw law (temperature
        1, nothing else done to its logits), whatever the rule; None unless it was asked for, and where
        that probability is 0.
    margin : float or None
        At temperature 0, how far the logit of `target_token` is ahead of the best other one, behind
        penalties; negative for a token that only a lossy rule keeps.
    draft_text, target_text : str
        The tokens as text. A token that only begins a character shows its bytes, such as `<F0 9F>`.
    target_parts : int
        How many tokens the first character of `target_text` is spread over; 1 as a rule.
    parent : int or None
        In a tree, the position of the drafted token that this one follows, -1 for none; None in a chain,
        where each follows the one before it.
    """

    position: int
    outcome: Outcome
    draft_token: int | None = None
    target_token: int | None = None
    accepted: bool = False
    discarded: bool = False
    draft_prob: float | None = None
    target_prob: float | None = None
    accept_prob: float | None = None
    draw: float | None = None
    emitted_prob: float | None = None
    logprob: float | None = None
    margin: float | None = None
    draft_text: str = ""
    target_text: str = ""
    target_parts: int = 1
    parent: int | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """A run begins: who decodes, by which rule, from what.

    `prompt_text` is the prompt with its control tokens, as the target reads it. `backend` is what
    computes the target's rows, empty where there is no choice or it was not noted; `exact_rows`
    says whether a row is the same, bit for bit, alone and in a block.
    """

    target: str
    drafter: str
    rule: str
    lossless: bool
    seed: int
    prompt: tuple[int, ...]
    simulated: bool = False
    prompt_text: str = ""
    backend: str = ""
    exact_rows: bool = False


@dataclass(frozen=True, slots=True)
class Drafted:
    """The guess of a step, before it is judged. `note` says why it is short or empty; `parents` as in `Draft`."""

    index: int
    context_length: int
    tokens: tuple[int, ...]
    texts: tuple[str, ...]
    draft_seconds: float
    note: str = ""
    parents: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One round, judged: draft up to n tokens, verify them in one target call, judge, emit.

    `context_length` counts the tokens before the step; `at_seconds` is the run's clock at its
    end (prefill included, time in which the caller held the run excluded).

    `evidence` is what a probe kept of the step, None without one; making it took `probe_seconds`, which
    are in no other time of the step and not in `at_seconds`.
    """

    index: int
    context_length: int
    decisions: tuple[Decision, ...]
    emitted: tuple[int, ...]
    draft_seconds: float
    verify_seconds: float
    overhead_seconds: float
    at_seconds: float
    note: str = ""
    evidence: Evidence | None = None
    probe_seconds: float = 0.0

    @property
    def n_drafted(self) -> int:
        """Drafted tokens of the step."""
        return sum(decision.draft_token is not None for decision in self.decisions)

    @property
    def n_accepted(self) -> int:
        """Drafted tokens that the rule kept, those discarded later among them."""
        return sum(decision.accepted for decision in self.decisions)

    @property
    def parents(self) -> tuple[int, ...] | None:
        """`Draft.parents` of what was drafted."""
        drafted = [decision for decision in self.decisions if decision.draft_token is not None]
        if not drafted or drafted[0].parent is None:
            return None
        return tuple(-1 if decision.parent is None else decision.parent for decision in drafted)

    @property
    def depth(self) -> int:
        """How many drafted tokens might have been kept: all of a chain, the longest branch of a tree."""
        parents = self.parents
        return self.n_drafted if parents is None else max(depths(parents))

    @property
    def guess(self) -> Drafted:
        """The `Drafted` event of the step, which holds all that it said."""
        drafted = [decision for decision in self.decisions if decision.draft_token is not None]
        tokens = tuple(decision.draft_token for decision in drafted if decision.draft_token is not None)
        texts = tuple(decision.draft_text for decision in drafted)
        return Drafted(self.index, self.context_length, tokens, texts, self.draft_seconds, self.note, self.parents)


@dataclass(frozen=True, slots=True)
class Finished:
    """A run ends. `error` is set when, and only when, `reason` is "error"."""

    reason: FinishReason
    ids: tuple[int, ...]
    text: str
    prefill_seconds: float
    total_seconds: float
    error: str = ""


Event = Started | Drafted | Step | Finished
