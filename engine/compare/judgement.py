"""What a comparison says of one configuration, in plain sentences: its speed, its text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from engine.bench.verdict import estimate_text
from engine.metrics import NEAR_TIE

__all__ = ["Judgement", "TextJudgement", "judged", "judged_text"]

Judgement = Literal["helps", "hurts", "no difference", "not known"]
TextJudgement = Literal["same", "near-tie", "difference", "not compared"]


def judged(row: Mapping[str, Any]) -> tuple[Judgement, str]:
    """Whether a configuration is faster than plain decoding, and why, from its row of a comparison.

    It helps if the whole interval lies above 1, hurts if the whole interval lies below 1; if 1 is in
    it, the difference cannot be told from noise.

    Examples
    --------
    >>> row = {"speed_up": {"value": 1.62, "low": 1.55, "high": 1.7}, "drafted": 50, "draft_cost": 0.03,
    ...        "acceptance_rate": 0.58}
    >>> print(judged(row)[1])
    helps: 1.62x (1.55-1.70); the draft costs 3 % of a target call and 58 % of its tokens are kept
    """
    speed_up = row["speed_up"]
    if speed_up is None:
        return "not known", "not known: too little was measured beside plain decoding, or the clock saw no time pass"
    told = estimate_text(speed_up)
    low, high = speed_up["low"], speed_up["high"]
    if low is None or high is None:
        return "not known", f"not sure: {told}, from one run; more repeats or more prompts give an interval"
    if low > 1:
        return "helps", f"helps: {told}; {_why_it_helps(row)}"
    if high < 1:
        return "hurts", f"hurts: {told}; {_why_it_hurts(row)}"
    return "no difference", f"makes no difference that can be told from noise: {told}"


def judged_text(
    row: Mapping[str, Any], *, lossless: bool, rule: str, temperature: float, plain_temperature: float
) -> tuple[TextJudgement, str]:
    """Whether a configuration emits what plain decoding emits, from its row.

    Parameters
    ----------
    row : mapping
    lossless : bool
        Whether its rule keeps the target's law.
    rule : str
    temperature, plain_temperature : float
        Only where both are 0 can texts be held against each other.
    """
    if temperature > 0 or plain_temperature > 0:
        hot = max(temperature, plain_temperature)
        guarantee = (
            "its rule is lossless, so they follow the same law"
            if lossless and temperature == plain_temperature
            else "and its law is another one: the temperature differs"
            if lossless
            else f"and the rule {rule} is lossy: it need not follow the target's law"
        )
        return "not compared", f"not compared: at temperature {hot:g} texts differ by chance; {guarantee}"
    n_compared, found = row["prompts_compared"], row["divergences"]
    if not n_compared:
        return "not compared", "not compared: no prompt has a run of both"
    if not found:
        return "same", f"the same text: all ids are equal ({_prompts(n_compared)})"
    real = [place for place in found if not place["near_tie"]]
    first = (real or found)[0]
    margin = first["margin"]
    lead = "" if margin is None else f", where the best logit of plain decoding led the second by {margin:.2g}"
    place = f"first at token {first['position'] + 1} of prompt {first['prompt']}{lead}"
    head = f"another text in {len(found)} of {_prompts(n_compared)}, {place}"
    if not real:
        return "near-tie", f"{head}: a near-tie (below {NEAR_TIE:g}), which rounding may decide either way"
    known = "a difference" if margin is not None else "one text only ends earlier, or the margin is not known"
    return "difference", f"{head}: {known}" + ("" if lossless else f"; the rule {rule} is lossy, so it may differ")


def _why_it_helps(row: Mapping[str, Any]) -> str:
    if not row["drafted"]:
        return "nothing was drafted, so every step was a plain one"
    cost = row["draft_cost"]
    kept = f"{_percent(row['acceptance_rate'])} of its tokens are kept"
    return kept if cost is None else f"the draft costs {_percent(cost)} of a target call and {kept}"


def _why_it_hurts(row: Mapping[str, Any]) -> str:
    """The dearer of drafting and verifying, against what comes out of a step."""
    if not row["drafted"]:
        return "nothing was drafted, so every step was a plain one, and looking for a draft took time"
    yields = f"only {row['tokens_per_step']:.1f} tokens come out of each"
    draft, verify = row["draft_cost_per_step"], row["verify_cost"]
    if draft is None or verify is None:
        return f"{yields} step"
    n_rows = _count(row["rows_per_call"])
    if draft > verify - 1:
        n_drafted = _count(row["rows_per_call"] - 1)
        return f"drafting {n_drafted} tokens costs {draft:.1f} target calls a step and {yields}"
    return f"verifying {n_rows} tokens costs {verify:.1f} target calls and {yields}"


def _percent(share: float) -> str:
    """Such as "3 %"; a share that would round to nothing is said to be less than 1 %."""
    return "less than 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def _count(value: float) -> str:
    """A mean number of tokens: whole if it is as good as whole.

    Examples
    --------
    >>> _count(5.0), _count(4.97), _count(3.26)
    ('5', '5', '3.3')
    """
    return f"{value:.0f}" if abs(value - round(value)) < 0.05 else f"{value:.1f}"


def _prompts(count: int) -> str:
    return f"{count} prompt{'s' * (count != 1)}"
