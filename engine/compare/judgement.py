"""What a comparison says of one configuration, in plain sentences: its speed, its text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from engine.bench.predict import of_trees
from engine.bench.verdict import clearly_above_1, clearly_below_1, count_text, estimate_text
from engine.figure_text import counted
from engine.metrics import NEAR_TIE
from engine.sampling import Sampling

__all__ = ["Judgement", "TextJudgement", "comparable", "judged", "judged_text"]

Judgement = Literal["helps", "hurts", "no difference", "not known"]
TextJudgement = Literal["same", "near-tie", "difference", "not compared"]

WITH_PREFILL: dict[Judgement, str] = {
    "helps": "faster than plain decoding",
    "hurts": "slower than plain decoding",
    "no difference": "without a clear difference",
}


def judged(row: Mapping[str, Any]) -> tuple[Judgement, str]:
    """Whether a configuration is faster than plain decoding, and why, from its row of a comparison.

    It helps if the whole interval lies above 1, as it is told in hundredths, and hurts if the whole interval lies
    below 1; if 1 is in it, the difference cannot be told from noise; on a simulated clock, which has none, it
    depends on the prompt. Decoding alone is judged; where the time of reading the prompt would turn the answer,
    that is said as well.

    Examples
    --------
    >>> row = {"speed_up": {"value": 1.62, "low": 1.55, "high": 1.7}, "drafted": 50, "draft_cost": 0.03,
    ...        "acceptance_rate": 0.58, "simulated": False,
    ...        "speed_up_with_prefill": {"value": 1.4, "low": 1.3, "high": 1.5}}
    >>> print(judged(row)[1])
    helps: 1.62x (1.55-1.70); the draft costs 3 % of a target call and 58 % of its tokens are kept
    """
    speed_up = row["speed_up"]
    if speed_up is None:
        return "not known", "not known: too little was measured beside plain decoding, or the clock saw no time pass"
    told, answer = estimate_text(speed_up), _answer(speed_up)
    match answer:
        case "not known":
            more = "more prompts" if row["simulated"] else "more repeats or more prompts"
            return answer, f"not sure: {told}, from one run; {more} give an interval"
        case "helps":
            sentence = f"helps: {told}; {_why_it_helps(row)}"
        case "hurts":
            sentence = f"hurts: {told}; {_why_it_hurts(row)}"
        case "no difference":
            sentence = _no_difference(row, told)
    with_prefill = row["speed_up_with_prefill"]
    other = _answer(with_prefill) if with_prefill else answer
    if other not in (answer, "not known"):
        sentence += f"; with the reading of the prompt it is {estimate_text(with_prefill)}, {WITH_PREFILL[other]}"
    return answer, sentence


PENALTIES = ("repetition_penalty", "frequency_penalty", "presence_penalty")
OF_A_LAW = ("temperature", "top_k", "top_p", "min_p", *PENALTIES, "arithmetic")


def comparable(one: Sampling, other: Sampling) -> bool:
    """Whether two texts can be held against each other: both are certain, and of the same law.

    Examples
    --------
    >>> comparable(Sampling(0), Sampling(0, top_k=3)), comparable(Sampling(0), Sampling(0, presence_penalty=1))
    (True, False)
    """
    return one.greedy and other.greedy and not _differing(one, other, PENALTIES)


def _differing(one: Sampling, other: Sampling, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if getattr(one, name) != getattr(other, name)]


def judged_text(
    row: Mapping[str, Any], *, lossless: bool, rule: str, sampling: Sampling, plain_sampling: Sampling
) -> tuple[TextJudgement, str]:
    """Whether a configuration emits what plain decoding emits, from its row.

    Parameters
    ----------
    row : mapping
    lossless : bool
        Whether its rule keeps the target's law.
    rule : str
    sampling, plain_sampling : Sampling
        See `comparable`.
    """
    if not comparable(sampling, plain_sampling):
        hot = max(sampling.temperature, plain_sampling.temperature)
        differs = _differing(sampling, plain_sampling, OF_A_LAW if hot else PENALTIES)
        guarantee = (
            f"the rule {rule} is lossy: it need not follow the target's law"
            if not lossless
            else f"its law is another one: {' and '.join(differs)} differ{'s' * (len(differs) == 1)}"
            if differs
            else "its rule is lossless, so they follow the same law"
        )
        by_chance = f"at temperature {hot:g} texts differ by chance; " if hot else ""
        return "not compared", f"not compared: {by_chance}{guarantee}"
    n_compared, found = row["prompts_compared"], row["divergences"]
    if not n_compared:
        return "not compared", "not compared: no prompt has a run of both"
    if not found:
        return "same", f"the same text: all ids are equal ({counted(n_compared, 'prompt')})"
    real = [place for place in found if not place["near_tie"]]
    first = (real or found)[0]
    margin = first["margin"]
    lead = "" if margin is None else f", where the best logit of plain decoding led the second by {margin:.2g}"
    place = f"first at token {first['position'] + 1} of prompt {first['prompt']}{lead}"
    head = f"another text in {len(found)} of {counted(n_compared, 'prompt')}, {place}"
    if not real:
        return "near-tie", f"{head}: a near-tie (below {NEAR_TIE:g}), which rounding may decide either way"
    known = "a difference" if margin is not None else "one text only ends earlier, or the margin is not known"
    return "difference", f"{head}: {known}" + ("" if lossless else f"; the rule {rule} is lossy, so it may differ")


def _answer(speed_up: Mapping[str, Any]) -> Judgement:
    low, high = speed_up["low"], speed_up["high"]
    if low is None or high is None:
        return "not known"
    return "helps" if clearly_above_1(low) else "hurts" if clearly_below_1(high) else "no difference"


def _no_difference(row: Mapping[str, Any], told: str) -> str:
    if not row["simulated"]:
        return f"makes no difference that can be told from noise: {told}"
    if row["speed_up"]["low"] == row["speed_up"]["high"]:
        return f"makes no difference: {told}, the same in every run"
    return f"makes no clear difference: {told}; it depends on the prompt"


def _why_it_helps(row: Mapping[str, Any]) -> str:
    if not row["drafted"]:
        return "nothing was drafted, so every step was a plain one"
    cost = row["draft_cost"]
    kept = f"{_percent(row['acceptance_rate'])} of its tokens are kept"
    if of_trees(row) and row["draft_cost_per_step"] is not None:  # siblings share a call
        return f"drafting a tree costs {_calls(row['draft_cost_per_step'])} and {kept}"
    return kept if cost is None else f"the draft costs {_percent(cost)} of a target call and {kept}"


def _why_it_hurts(row: Mapping[str, Any]) -> str:
    """What costs a step most beyond a plain one, against what comes out of it."""
    if not row["drafted"]:
        return "nothing was drafted, so every step was a plain one, and looking for a draft took time"
    yields = f"only {_tokens(row['tokens_per_step'], 1)} come out of each"
    draft, verify, overhead = row["draft_cost_per_step"], row["verify_cost"], row["extra_overhead_cost"]
    if draft is None or verify is None or overhead is None:
        return f"{yields} step"
    costs = {
        draft: f"drafting {_tokens(row['rows_per_call'] - 1)} costs {_calls(draft)} a step",
        verify - 1: f"verifying {_tokens(row['rows_per_call'])} costs {_calls(verify)}",
        overhead: f"the work around the models costs {_calls(overhead)} a step more than in plain decoding",
    }
    return f"{costs[max(costs)]} and {yields}"


def _percent(share: float) -> str:
    """Such as "3 %"; a share that would round to nothing is said to be less than 1 %."""
    return "less than 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def _tokens(count: float, digits: int | None = None) -> str:
    """A mean number of tokens, with so many digits behind the point, or none if it is as good as whole.

    Examples
    --------
    >>> _tokens(1.0), _tokens(3.26), _tokens(1.0, 1)
    ('1 token', '3.3 tokens', '1.0 tokens')
    """
    text = count_text(count) if digits is None else f"{count:.{digits}f}"
    return "1 token" if text == "1" else f"{text} tokens"


def _calls(cost: float) -> str:
    """A cost in plain calls of the target, which never looks like nothing.

    Examples
    --------
    >>> _calls(1.24), _calls(0.124), _calls(0.001)
    ('1.2 target calls', '0.12 target calls', 'less than 0.01 target calls')
    """
    if cost < 0.01:
        return "less than 0.01 target calls"
    return f"{cost:.{1 if cost >= 0.995 else 2}f} target calls"
