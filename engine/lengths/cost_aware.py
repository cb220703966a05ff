"""Draft one token more exactly where its chance of being kept pays for what it costs, and none where none does.

A step that drafts n tokens yields E_n = 1 + S_1 + ... + S_n tokens, S_i being the chance that its first i
are all kept, in T_n seconds. The greatest of all E_n / T_n, among them E_0 / T_0, plain decoding, is the
speed rho to be had, and one token more pays where S_{n+1} > rho (T_{n+1} - T_n): the renewal-reward form
of theorem 3.8 of Leviathan et al., arXiv 2211.17192, with costs that need be neither constant nor flat.
All of it is estimated while the run goes on (`engine.lengths.running`).

Where plain decoding is fastest nothing would be learnt any more, so a draft is tried now and then. Every
plain step earns a fiftieth of itself, and a try is made when that pays for what it is expected to lose.
"""

from __future__ import annotations

import math
from collections import deque
from statistics import median_low

from engine.lengths.base import NamedPolicy, StepOutcome, checked_length
from engine.lengths.prospect import Prospect
from engine.lengths.running import KEPT, MOST_LATE, Acceptance, Line

__all__ = ["CostAware"]

TRYING = 0.02
"""The share of the time that may be lost by trying where drafting does not pay."""

MOST_SAVED, MOST_LOST = 4.0, 2.0
"""In plain steps: what is kept of a gain, for tries to come, and the most of a loss, which tries wait for."""

TRY_COUNTS = 4
"""A try counts as so many steps, because tries are rare."""

TRIES = (1, 1, 1, 4)
"""How many tokens a try has, in turn: a verification may be dear at once and cheap after that."""

LONGER_EVERY = 16
"""Of so many drafts one has a token more than pays, to learn what it costs and whether it is kept."""

PLAIN_EVERY, PLAIN_SELDOM, SMALL_GAIN = 32, 128, 1.3
"""Where drafting pays, but little, one of so many steps is a plain one, to know what that takes; where more, fewer."""

FIRST_PLAIN, FEW_PLAIN, PLAIN_STEPS = 2, 3, 15
"""Plain steps: so many at the beginning, so many before they become rarer, and so many that are remembered."""

GROWTH = 4
"""The next draft may be so many times as long as the longest so far, whose cost is known."""


class CostAware(NamedPolicy):
    """Draft as far as each token pays for itself, by running estimates of acceptance, drafting and verifying.

    The first two steps are plain ones, to know what that takes; the third drafts one token. A drafter that knows
    its own chances (a draft head, the lookup beside it, suffix decoding) is asked for each: the estimates then say
    whether drafting pays at all, and what a token must be worth.

    It measures with the run's own clock: a simulated one makes it repeatable. What the target and the drafter
    take is all that it counts.

    Parameters
    ----------
    length : int, default 4
        The most tokens to draft, 0 to 32.

    Raises
    ------
    SettingError
        If it is out of range.

    Examples
    --------
    A drafted token costs 0.3 plain calls and is never kept, so plain decoding is soon left alone:

    >>> policy = CostAware(4)
    >>> lengths = []
    >>> for _ in range(12):
    ...     lengths.append(policy.next_length())
    ...     policy.observe(StepOutcome(lengths[-1], 0, draft_seconds=0.3 * lengths[-1], verify_seconds=1.0))
    >>> lengths
    [0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    """

    name = "cost-aware"
    guarantee = (
        "Drafts one more token exactly where its chance of being kept pays for its cost, and none where none pays; "
        "what it loses by trying is held at 2 % of the time. By real time a seed may give another text each time."
    )
    source = "Leviathan et al. 2023, arXiv 2211.17192, theorem 3.8; after TurboSpec, 2406.14066"
    needs = "the times of a step"

    def __init__(self, length: int = 4) -> None:
        self.length = checked_length(length)
        self._acceptance = Acceptance()
        self._drafting, self._verifying = Line(), Line()
        self._plain_steps: deque[float] = deque(maxlen=PLAIN_STEPS)  # seconds of the latest
        self._plain_seconds: float | None = None  # their median, of two the lower: now and then a call is late
        self._speed = 0.0  # rho, tokens per second
        self._longest = 0  # that was drafted
        self._n_drafts = self._n_tries = 0
        self._first_was_late = False
        self._since_plain = 0  # steps
        self._asked = _Asked()
        self._chances_known = False  # by the drafter
        self._account = 0.0  # seconds gained, and earned for tries
        self._trying = self._try_again = False

    def next_length(self) -> int:
        """The number of tokens with the greatest speed; another one only to learn, see the module."""
        length = self._next_length() if self.length else 0
        self._asked.now = length > 0
        return length

    def before(self, prospect: Prospect) -> bool:
        """Whether a guess whose chance is known is worth verifying; its law has been paid for."""
        if prospect.survival is None:
            return True
        self._chances_known = True
        n = prospect.n_before
        return self._pays(prospect.survival, self._verify_seconds(n + 1) - self._verify_seconds(n))

    def behind(self, prospect: Prospect, token: int) -> bool:
        """Whether one more guess would be worth drafting and verifying, if it was as likely as its place is."""
        if prospect.survival is None:
            return True
        n = prospect.n_before + 1
        chance = prospect.survival * self._acceptance.at(min(n, self.length - 1))
        return self._pays(chance, self._seconds(n + 1) - self._seconds(n))

    def observe(self, outcome: StepOutcome) -> None:
        """Learn chances and costs."""
        n_drafted = outcome.n_drafted
        plain = self._plain_seconds or 0.0
        if n_drafted and self._again_first(outcome.draft_seconds + outcome.verify_seconds, (n_drafted + 1) * plain):
            return
        self._asked.add(outcome, self._seconds(n_drafted))
        if not n_drafted:
            self._since_plain = 0
            self._plain_steps.append(outcome.verify_seconds)
            self._plain_seconds = plain = median_low(self._plain_steps)
        else:
            self._since_plain += 1
            self._n_drafts += 1
            self._n_tries += self._trying
            self._longest = max(self._longest, n_drafted)
            self._acceptance.add(outcome.n_in_branch, outcome.n_accepted, n_steps=TRY_COUNTS if self._trying else 1)
            self._drafting.add(n_drafted, outcome.draft_seconds, origin=0.0)
            self._verifying.add(n_drafted, outcome.verify_seconds, origin=plain)
        gained = (outcome.n_accepted + 1) * plain - self._seconds(n_drafted) if n_drafted else TRYING * plain
        self._try_again = self._trying and n_drafted > 0 and gained > 0
        most = MOST_SAVED * plain if n_drafted else math.inf  # what plain steps earn is spent as soon as it is enough
        self._account = max(min(self._account + gained, max(self._account, most)), -MOST_LOST * plain)

    def _next_length(self) -> int:
        self._trying = False
        if self._plain_seconds is None or len(self._plain_steps) < FIRST_PLAIN:
            self.reason = "the first steps show what a plain one takes"
            return 0
        if not self._n_drafts:
            return 1
        best = self._best(self._plain_seconds)
        if best and self._since_plain >= self._plain_due(self._plain_seconds):
            self.reason = "now and then a step shows what a plain one takes"
            return 0
        if best:
            return min(best + (self._n_drafts % LONGER_EVERY == 0), self.length)
        tried = self.length if self._chances_known else min(TRIES[self._n_tries % len(TRIES)], self.length)
        if self._try_again or self._account >= self._loss(tried, self._plain_seconds):
            self._trying = True
            return tried
        self.reason = f"drafting does not pay now: {self._why(self._plain_seconds)}"
        return 0

    def _plain_due(self, plain: float) -> int:
        """After so many steps that drafted, one is plain."""
        if len(self._plain_steps) < FEW_PLAIN:
            return PLAIN_EVERY // 4
        return PLAIN_EVERY if self._speed * plain < SMALL_GAIN else PLAIN_SELDOM

    def _why(self, plain: float) -> str:
        """What `_best` has found plain decoding faster by."""
        if plain <= 0:
            return "a plain step takes no time"
        if self._chances_known:
            return (
                f"a step in which the drafter is asked gives {self._asked.mean_tokens:.3g} tokens in "
                f"{self._asked.mean_seconds:.3g} s, and a plain one 1 in {plain:.3g} s"
            )
        return (
            f"a guess costs {self._seconds(1) - plain:.3g} s beside the {plain:.3g} s of a plain step, "
            f"and is kept with a chance of {self._acceptance.at(0):.2f}"
        )

    def _again_first(self, seconds: float, worth: float) -> bool:
        """Whether the first draft took longer than its tokens can be worth: it may have been late."""
        again = not self._n_drafts and not self._first_was_late and seconds > worth
        self._first_was_late |= again
        return again

    def _best(self, plain: float) -> int:
        """The length of the greatest speed, which is kept as rho; 0 is plain decoding."""
        if plain <= 0:  # no draft can save time
            return 0
        best, self._speed = 0, 1 / plain
        if self._chances_known:
            if self._asked.speed > self._speed:
                best, self._speed = self.length, self._asked.speed
            return best
        tokens, seconds, further = 1.0, self._seconds(1), self._seconds(2) - self._seconds(1)  # two lines make one
        for n, survival in enumerate(self._acceptance.survivals(min(self.length, GROWTH * self._longest)), 1):
            tokens += survival
            if tokens / seconds > self._speed:
                best, self._speed = n, tokens / seconds
            seconds += further
        return best

    def _loss(self, n_drafted: int, plain: float) -> float:
        """Seconds that a draft is expected to lose against plain steps for as many tokens."""
        if self._chances_known:
            return max(0.0, self._asked.mean_seconds - self._asked.mean_tokens * plain)
        tokens = 1 + sum(self._acceptance.survivals(n_drafted))
        return max(0.0, self._seconds(n_drafted) - tokens * plain)

    def _pays(self, chance: float, seconds: float) -> bool:
        self.reason = f"a chance of {chance:.2f} does not pay for the {seconds:.2g} s of a further guess"
        return chance > self._speed * seconds

    def _seconds(self, n_drafted: int) -> float:
        """Of a step with so many drafted tokens."""
        drafting = self._drafting.at(n_drafted, origin=0.0) if n_drafted else 0.0
        return drafting + self._verify_seconds(n_drafted)

    def _verify_seconds(self, n_drafted: int) -> float:
        plain = self._plain_seconds or 0.0
        return self._verifying.at(n_drafted, origin=plain) if n_drafted else plain


class _Asked:
    """What a step yields and takes, on average, in which the drafter is asked, whether it then drafts or not."""

    def __init__(self) -> None:
        self.now = False
        self._weight = self._tokens = self._seconds = 0.0

    def add(self, outcome: StepOutcome, expected_seconds: float) -> None:
        if self.now:
            usual = max(expected_seconds, self.mean_seconds if self._weight else 0.0)
            seconds = outcome.draft_seconds + outcome.verify_seconds
            self._weight = self._weight * KEPT + 1
            self._tokens = self._tokens * KEPT + 1 + outcome.n_accepted
            self._seconds = self._seconds * KEPT + (min(seconds, MOST_LATE * usual) if usual > 0 else seconds)

    @property
    def mean_tokens(self) -> float:
        return self._tokens / self._weight

    @property
    def mean_seconds(self) -> float:
        return self._seconds / self._weight

    @property
    def speed(self) -> float:
        """Tokens per second."""
        return self._tokens / self._seconds if self._seconds > 0 else 0.0
