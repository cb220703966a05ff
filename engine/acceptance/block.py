"""Block verification: the draft is judged as a whole, and more of it is kept than token by token.

Sun et al., *Block Verification Accelerates Speculative Decoding*, arXiv 2403.10444 (ICLR 2025), Algorithm 2.
What is lost at one position, a token of which the target thinks more than the draft, counts for those
behind it.  So a token may be kept though its own test fails: the last test that passes decides, and
whoever stops at the first that fails gives another law.

With a draft of one token, and at temperature 0, it is the exact rule; with a draft that proposes for
sure (a lookup, an argmax) it keeps as many on average.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.acceptance.base import Needs
from engine.acceptance.chances import Chances
from engine.acceptance.exact import excess, residual
from engine.evidence import Source, Term
from engine.sampling import Law, Noise, Purpose, Rows
from engine.values import Draft, Tested, Verdict

__all__ = ["BlockVerification"]


@dataclass(frozen=True, slots=True)
class BlockTest:
    """The test of one drafted token.

    Attributes
    ----------
    joint_ratio : float
        P_i of the paper: the probability that this token or one behind it is the last that is kept.
    left : float
        The probability that this token is the last that is kept.
    accept_prob : float
        h_i of the paper: with what probability the test passes.
    """

    joint_ratio: float
    left: float
    accept_prob: float


class BlockVerification:
    """Keep the draft up to its last token whose test passes; the first failure does not end it.

    The running ratio is P_i = min(1, P_{i-1} * target_prob / draft_prob), P_0 = 1 (Algorithm 2). Token i passes
    with probability h_i = Z_i / (Z_i + 1 - P_i), where Z_i is the mass of max(0, P_i * target - draft) at the position
    behind it (equations 4 and 5); the last token passes with P_n. The target's token behind the kept ones comes
    from that positive part, normalised.

    Examples
    --------
    The same two laws at every position, two tokens drafted: 11/9 of them are kept on average, by the exact rule 10/9.

    >>> import numpy as np
    >>> from engine.sampling import Dense, Sampling
    >>> rows = Rows(np.log([[1 / 3, 2 / 3]] * 3), Sampling(temperature=1))
    >>> law, kept = Dense(np.array([2 / 3, 1 / 3])), 0.0
    >>> for tokens in ((0, 0), (0, 1), (1, 0), (1, 1)):
    ...     chances = BlockVerification().chances(Draft(tokens, (law, law)), rows)
    ...     drawn = law.prob(tokens[0]) * law.prob(tokens[1])
    ...     kept += drawn * sum(n * chance for n, (chance, _) in enumerate(chances))
    >>> round(9 * kept, 9)
    11.0
    """

    name = "block"
    lossless = True
    guarantee = (
        "The emitted text has exactly the target's law, "
        "and no other lossless rule keeps more of a single draft on average."
    )
    source = "Sun et al. 2025, arXiv 2403.10444, Algorithm 2, equations 4 and 5, theorems 1 and 2"
    needs: Needs = "draft law"
    greedy_draft = False
    formula = "{left} / ({left} + 1 - {joint_ratio}) = {accept_prob}"
    replacement: Source = "weighted residual"

    def judge(self, draft: Draft, rows: Rows, *, noise: Noise, start: int) -> Verdict:
        """See `AcceptanceRule.judge`. All tokens are tested, those behind the first refused one too."""
        tests = _tests(draft, rows)
        draws = [noise.uniform(start + index, Purpose.ACCEPT) for index in range(len(tests))]
        passed = [index + 1 for index, test in enumerate(tests) if draws[index] < test.accept_prob]
        n_accepted = max(passed, default=0)  # the largest, wherever the others fail
        tested = tuple(
            Tested(
                index < n_accepted,
                draft.laws[index].prob(token),
                rows.law(index).prob(token),
                tests[index].accept_prob,
                draws[index],
                _terms(tests[index]),
            )
            for index, token in enumerate(draft.tokens)
        )
        law = _law_behind(n_accepted, tests, draft, rows)
        return Verdict(tested, noise.draw(law, start + n_accepted, Purpose.TARGET), law)

    def chances(self, draft: Draft, rows: Rows) -> Chances:
        """See `AcceptanceRule.chances`."""
        tests = _tests(draft, rows)
        chances: Chances = []
        fail_behind = 1.0  # the probability that no test behind this one passes
        for n_accepted in range(len(tests), 0, -1):
            keep_prob = tests[n_accepted - 1].accept_prob
            chances.append((keep_prob * fail_behind, _law_behind(n_accepted, tests, draft, rows)))
            fail_behind *= 1 - keep_prob
        return [(fail_behind, _law_behind(0, tests, draft, rows)), *reversed(chances)]


def _tests(draft: Draft, rows: Rows) -> list[BlockTest]:
    tests: list[BlockTest] = []
    ratio = 1.0
    for index, (token, draft_law) in enumerate(zip(draft.tokens, draft.laws, strict=True)):
        ratio = min(1.0, ratio * rows.law(index).prob(token) / draft_law.prob(token))
        if index + 1 == len(draft.tokens):
            tests.append(BlockTest(ratio, ratio, ratio))
            continue
        left = excess(rows.law(index + 1), draft.laws[index + 1], ratio)
        tests.append(BlockTest(ratio, left, 1.0 if ratio == 1 else left / (left + 1 - ratio)))
    return tests


def _law_behind(n_accepted: int, tests: list[BlockTest], draft: Draft, rows: Rows) -> Law:
    """The law of the target's token behind so many kept ones."""
    if n_accepted == len(tests):
        return rows.law(n_accepted)
    ratio = tests[n_accepted - 1].joint_ratio if n_accepted else 1.0
    return residual(rows.law(n_accepted), draft.laws[n_accepted], ratio)


def _terms(test: BlockTest) -> tuple[Term, ...]:
    """The numbers of the formula, but where they stand for 0 / 0, which counts as 1."""
    if test.left == 0 and test.joint_ratio == 1:
        return ()
    return (Term("left", test.left), Term("joint_ratio", test.joint_ratio))
