"""A step explained: every number that led to its tokens, with plain words beside it, as plain data.

The page, an exported run and `python -m engine runs explain` all show what `explain` says; nobody
computes anything from it. It reads the events of a run, so that a run of any age can be explained,
one without a probe as far as its decisions go.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from engine.acceptance import (
    BlockVerification,
    ExactRejection,
    GumbelMatch,
    SampleMatch,
    TreeDistinct,
    TreeIndependent,
    TreeMatch,
)
from engine.evidence import Choice, Evidence, ExactTest, PositionEvidence
from engine.values import Decision, Step

__all__ = ["explain", "filled", "number", "quoted"]

TARGET_FIRST = (SampleMatch.name, GumbelMatch.name, TreeMatch.name)
"""The rules for which the target draws its own token before it looks at the guess."""

IN_TURN = (TreeIndependent.name, TreeDistinct.name)
"""The rules that hold a guess against what the refused ones before it leave of the target's law."""

MOST_REFUSED_NAMED = 3

SPELLED = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def explain(step: Step, *, rule: str = ExactRejection.name) -> dict[str, Any]:
    """All that is known of a step.

    Parameters
    ----------
    step : Step
    rule : str, default "exact"
        The run's rule (`Started.rule`): a step without evidence does not name it.

    Returns
    -------
    dict
        Ready for JSON. `positions` has an entry for every decision: its fields, `formula` (the rule's test
        with the numbers filled in, "" where there is none), `words`, `logprob_words` (the target's
        log-probability, "" where it was not asked for), and `exact` (what the exact rule would
        have done, or None). `choice` is the deciding position: the fields of
        `engine.evidence.Choice`, a list of `words`, and for every alternative whether it is the `guess`
        and whether it was `taken`; None without evidence. `step` counts from 0.

    Examples
    --------
    >>> decision = Decision(0, "rejected", 5, 7, draft_prob=0.41, target_prob=0.03, accept_prob=0.03 / 0.41, draw=0.52)
    >>> told = explain(Step(0, 9, (decision,), (7,), 0.0, 0.1, 0.0, 0.2))
    >>> told["positions"][0]["formula"]
    'min(1, 0.03 / 0.41) = 0.0732'
    >>> told["positions"][0]["words"]
    'The target gives this token 0.03, the draft gave it 0.41; it is kept with probability 0.0732; the draw was \
0.52: rejected.'
    """
    evidence = step.evidence
    formula = evidence.formula if evidence else ExactRejection.formula if rule == ExactRejection.name else ""
    more = {found.position: found for found in evidence.positions} if evidence else {}
    return {
        "step": step.index,
        "context_length": step.context_length,
        "note": step.note,
        "rule": rule,
        "positions": [
            _position(decision, formula, more.get(decision.position), rule, _after(step, decision))
            for decision in step.decisions
        ],
        "choice": _choice(step, evidence, rule) if evidence else None,
        "probe_seconds": step.probe_seconds,
    }


def _position(decision: Decision, formula: str, more: PositionEvidence | None, rule: str, after: str) -> dict[str, Any]:
    tested = decision.accept_prob is not None
    numbers = {name: getattr(decision, name) for name in ("draft_prob", "target_prob", "accept_prob", "draw")}
    numbers |= {term.name: term.value for term in more.terms} if more else {}
    shown = filled(formula, numbers) if tested else ""
    exact = more.exact if more else None
    return {
        **asdict(decision),
        "formula": shown,
        "words": _words(decision, shown, exact, rule, _given(decision, numbers, rule, after), after),
        "logprob_words": _logprob_words(decision),
        "exact": _exact(decision, exact) if exact else None,
    }


def _exact(decision: Decision, exact: ExactTest) -> dict[str, Any]:
    numbers = {**asdict(decision), **asdict(exact)}
    return {**asdict(exact), "formula": filled(ExactRejection.formula, numbers)}


def _after(step: Step, decision: Decision) -> str:
    """Names the siblings that were refused before a guess of a tree; "" where there are none."""
    refused = [
        quoted(other.draft_text, other.draft_token)
        for other in step.decisions[: decision.position]
        if other.outcome == "declined" and other.parent == decision.parent
    ]
    if not refused:
        return ""
    if len(refused) > MOST_REFUSED_NAMED:
        return f" after the refusal of {len(refused)} others"
    return f" after the refusal of {' and '.join(refused)}"


def _given(decision: Decision, numbers: Mapping[str, float | None], rule: str, after: str) -> str:
    """What target and draft give the guess, and what is left of the former behind refused siblings."""
    gives = f"The target gives this token {number(decision.target_prob)}"
    if not after or rule not in IN_TURN:
        return f"{gives}, the draft gave it {number(decision.draft_prob)}"
    left = numbers.get("left_prob")
    if left is not None:
        gives += f", and {number(left)}{after}"
    elif decision.accept_prob == 1:
        gives += f", and at least {number(decision.draft_prob)}{after}"
    elif decision.accept_prob is not None and decision.draft_prob is not None:
        gives += f", and {number(decision.accept_prob * decision.draft_prob)}{after}"
    return f"{gives}; the draft gave it {number(decision.draft_prob)}"


def _words(decision: Decision, formula: str, exact: ExactTest | None, rule: str, gives: str, after: str) -> str:
    match decision.outcome:
        case "unreached" if decision.parent is not None:
            return "It stands on a branch of the tree that was not gone down to here, so nobody judged it."
        case "unreached" if decision.accept_prob is None:
            return "It was drafted behind the rejected token, so nobody judged it."
        case "unreached" if decision.draw is None or rule != BlockVerification.name:
            return "It was drafted behind the rejected token, and is lost with it, whatever its own test said."
        case "unreached":
            return f"It was drafted behind the rejected token. {_test_words(decision, formula, rule, gives, after)}"
        case "bonus" if decision.parent is not None:
            return (
                "The branch was kept to its end, where nothing more was drafted, so the target adds one: it gives this "
                f"token {_prob(decision)}."
            )
        case "bonus":
            return f"Every drafted token was kept, so the target adds one: it gives this token {_prob(decision)}."
        case "plain":
            return f"Nothing was drafted, so the target speaks alone: it gives this token {_prob(decision)}."
    if decision.accept_prob is None:
        return ""
    words = f"{_test_words(decision, formula, rule, gives, after)} {decision.outcome}."
    if decision.outcome == "declined":
        words += " Another guess stood at the same place, and was tried next."
    if exact:
        words += f" {_exact_words(decision, exact)}"
    if decision.discarded:
        words += " What the step gave here was cut off again, by an end token, a stop string or a limit before it."
    return words


def _logprob_words(decision: Decision) -> str:
    """What the target's raw law gives the token that stands here; "" where nobody asked."""
    if decision.logprob is None:
        return ""
    token = quoted(decision.target_text, decision.target_token)
    return (
        f"The target's raw law, before temperature, penalties and truncation, gives {token} the log-probability "
        f"{number(decision.logprob)}, a probability of {number(math.exp(decision.logprob))}."
    )


def _test_words(decision: Decision, formula: str, rule: str, gives: str, after: str) -> str:
    if rule in TARGET_FIRST:
        return (
            f"{gives}. The target draws first, and the guess is kept if it is the same token, which has probability "
            f"{number(decision.accept_prob)}{after}.{f' Here, {formula}.' if formula else ''} So it was"
        )
    if decision.draw is None:
        return (
            f"{gives}. {f'The rule draws no number: {formula}.' if formula else 'The rule draws no number.'} So it was"
        )
    kept, draw = _apart(decision.accept_prob, decision.draw)
    if rule == BlockVerification.name:
        return f"{gives}; its test passes with probability {kept}, and the draw was {draw}. {_block_words(decision)}"
    return f"{gives}; it is kept with probability {kept}; the draw was {draw}:"


def _block_words(decision: Decision) -> str:
    """What the test of one token says in a rule that keeps the draft up to the last token whose test passes."""
    assert decision.accept_prob is not None
    assert decision.draw is not None
    if decision.outcome == "accepted" and decision.draw < decision.accept_prob:
        return "It passes, and with a token that passes all before it are kept:"
    if decision.outcome == "accepted":
        return "It fails, but a token behind it passes, and all before that one are kept:"
    if decision.outcome == "rejected":
        return "It fails, and so does every token behind it:"
    return "It fails too; had it passed, all before it would have been kept."


def _exact_words(decision: Decision, exact: ExactTest) -> str:
    kept, draw = _apart(exact.accept_prob, exact.draw)
    does = "kept it" if exact.accepted else f"rejected it and put {quoted(exact.text, exact.token)} in its place"
    same = "too " if exact.accepted == decision.accepted else ""
    return (
        f"The exact rule keeps it with probability {kept}; "
        f"the draw that the seed gives here is {draw}, so it would {same}have {does}."
    )


def _prob(decision: Decision) -> str:
    return number(decision.emitted_prob)


def _choice(step: Step, evidence: Evidence, rule: str) -> dict[str, Any]:
    choice = evidence.choice
    decision = step.decisions[choice.position]
    guesses = [decision.draft_token]
    if decision.parent is not None and decision.draft_token is not None:
        guesses = [other.draft_token for other in step.decisions if other.parent == decision.parent]
    told = asdict(choice)
    for row in told["alternatives"]:
        row["guess"] = row["token"] in guesses
        row["taken"] = row["token"] == decision.target_token
    told["words"] = [_taken_words(evidence, decision), *_law_words(choice, rule)]
    return told


def _taken_words(evidence: Evidence, decision: Decision) -> str:
    choice = evidence.choice
    token = quoted(decision.target_text, decision.target_token)
    if _greedy(choice) and choice.drawn_prob == 1:
        lead = "" if decision.margin is None else f", whose logit leads the next best one by {number(decision.margin)}"
        return f"At temperature 0 the target takes its most probable token: {token}{lead}."
    law = {
        "residual": "the residual, which is what the target gives beyond the draft",
        "weighted residual": "what is left of the target beyond the draft, the target's law weighted with the ratio "
        f"{number(_ratio_before(evidence))} of the tokens kept before",
        "target": "the target's own law",
        "": "",
    }[choice.drawn_from]
    if choice.drawn_prob is None:
        return f"The target's own token is {token}; the rule does not say what law it was drawn from."
    role = "The replacement" if decision.outcome == "rejected" else "The target's own token"
    if choice.draw is None or choice.drawn_below is None:
        return (
            f"{role} {token} was drawn from {law}: it has {number(choice.drawn_prob)} there, and of all tokens the "
            "largest sum of the logarithm of that and the Gumbel number that the seed gives it here."
        )
    low, high = _apart(choice.drawn_below, choice.drawn_below + choice.drawn_prob)
    return (
        f"{role} {token} was drawn from {law}: it has {number(choice.drawn_prob)} there, the stretch from {low} to "
        f"{high} of the line from 0 to 1, and the number drawn was {number(choice.draw)}."
    )


def _ratio_before(evidence: Evidence) -> float | None:
    """The joint ratio of the tokens before the deciding position; 1 where there are none, or none is noted."""
    for found in evidence.positions:
        if found.position == evidence.choice.position - 1:
            return next((term.value for term in found.terms if term.name == "joint_ratio"), 1.0)
    return 1.0


def _law_words(choice: Choice, rule: str) -> list[str]:
    target = f"The target's entropy is {number(choice.target_entropy)} nats{_width(choice.target_entropy)}"
    if choice.total_variation is None or choice.draft_entropy is None:
        return [f"{target}."]
    if _greedy(choice) and choice.total_variation in (0, 1):
        where = "the same one: they are 0" if choice.total_variation == 0 else "different ones: they are 1"
        return [f"At temperature 0 each law is all on one token, draft and target on {where} apart, without entropy."]
    apart = f"The laws of draft and target are {number(choice.total_variation)} apart (total variation)"
    if choice.drawn_from and rule == ExactRejection.name:
        apart += ", and a guess drawn from this draft is rejected here with just that probability"
    return [f"{apart}.", f"{target}, the draft's {number(choice.draft_entropy)}{_width(choice.draft_entropy)}."]


def _width(entropy: float) -> str:
    """An entropy as the number of tokens that an even choice with as much entropy has, never a bare 1."""
    if entropy <= 0:
        return ""
    width = math.exp(entropy)
    text = number(width) if width >= 1.005 else f"{width:.3f}"
    return " (all but certain)" if text == "1.000" else f" (as open as an even choice among {text} tokens)"


def _greedy(choice: Choice) -> bool:
    return any(row.target_logit is not None for row in choice.alternatives)


# ---- numbers and texts as a reader sees them ----


def filled(formula: str, numbers: Mapping[str, float | None]) -> str:
    """A rule's formula with numbers in the places of their names; "" if one of them is not known.

    Examples
    --------
    >>> filled("exp({a} - {b}) = {c}", {"a": 1.5, "b": -2.0, "c": None})
    'exp(1.5 - (-2)) = beyond all bounds'
    >>> filled("{a} / {b}", {"a": 1.0})
    ''
    """
    if any(name not in numbers for name in re.findall(r"\{(\w+)\}", formula)):
        return ""

    def shown(match: re.Match[str]) -> str:
        value = numbers[match[1]]
        text = number(value)
        behind_minus = formula[: match.start()].endswith("- ")
        return "beyond all bounds" if value is None else f"({text})" if value < 0 and behind_minus else text

    return re.sub(r"\{(\w+)\}", shown, formula)


def number(value: float | None, digits: int = 3) -> str:
    """A number with some significant digits, and with more if it would look like 0 or 1 and is not.

    Examples
    --------
    >>> [number(value) for value in (None, 0, 1, 0.0312345, 0.99999, 12.3456, 2.5e-6, 1234567.0)]
    ['n/a', '0', '1', '0.0312', '0.99999', '12.35', '2.5e-6', '1.23e+6']
    """
    if value is None:
        return "n/a"
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    size = abs(value)
    if 1 < size < 1e5:
        return f"{value:.{max(2, digits - 1)}f}".rstrip("0").rstrip(".")
    while digits < 16 and float(f"{size:.{digits}g}") == 1 != size:
        digits += 1
    return re.sub(r"e([+-])0*", r"e\1", f"{value:.{digits}g}")


def _apart(one: float | None, other: float | None) -> tuple[str, str]:
    """Two numbers with as many digits as tell them apart."""
    for digits in range(3, 17):
        texts = number(one, digits), number(other, digits)
        if texts[0] != texts[1] or one == other:
            break
    return texts


def quoted(text: str, token: int | None) -> str:
    """A token's text between quotation marks, line breaks spelled; its id where it has no text.

    Examples
    --------
    >>> quoted(" the", 5), quoted("\\n", 5), quoted("", 5)
    ('“ the”', '“\\\\n”', 'token 5')
    """
    if not text:
        return f"token {token}"
    return f"“{''.join(SPELLED.get(character, character) for character in text)}”"
