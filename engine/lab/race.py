"""The length policies in a race: one prompt, one drafter, every policy, measured as a comparison is.

Nothing is measured here that `engine.compare` does not measure; what is added is how far each policy drafted at each
step of its first run.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

from engine.bench.plan import Configuration, Turn
from engine.bench.prompts import Prompt
from engine.bench.run import Progress, silent
from engine.compare.run import CompareSettings, plan_of, run_comparison
from engine.errors import SettingError
from engine.policies import POLICIES
from engine.spec import RunSpec
from engine.stopping import Cancelled, never
from engine.values import Event, Step

__all__ = ["race", "race_settings"]


def race_settings(spec: RunSpec, *, repeats: int = 3) -> CompareSettings:
    """The comparison of every length policy with plain decoding; the spec's draft length is the most of each.

    Parameters
    ----------
    spec : RunSpec
        Target, drafter, prompt and all else. Its own policy has no meaning here.
    repeats : int, default 3
        Each has a seed of its own.

    Raises
    ------
    DraftscopeError
        If a setting cannot be used; nothing is loaded to find out.

    Examples
    --------
    >>> settings = race_settings(RunSpec(prompt="The draft"))
    >>> [spec.length_policy for spec in settings.specs] == list(POLICIES)
    True
    """
    if spec.drafter == "none" or spec.draft_length == 0:
        raise SettingError(
            "nothing is drafted at these settings; a race of length policies needs a drafter and a draft length"
        )
    specs = tuple(replace(spec, length_policy=policy) for policy in POLICIES)
    settings = CompareSettings(specs, (Prompt("1", spec.prompt),), repeats, most=len(specs), new_seeds=True)
    if spec.seed + repeats > 2**64:
        raise SettingError(f"the seed is {spec.seed}; with {repeats} repeats it must be at most {2**64 - repeats}")
    plan_of(settings)
    return settings


def race(settings: CompareSettings, progress: Progress = silent, *, cancelled: Cancelled = never) -> dict[str, Any]:
    """Run the race.

    Parameters
    ----------
    settings : CompareSettings
        Of `race_settings`.
    progress, cancelled
        See `engine.compare.run.run_comparison`.

    Returns
    -------
    dict
        What a comparison gives, and under `policies` for each policy its row of figures with `policy`, and with
        `length_by_step`, the draft length (of a tree its longest branch), and `accepted_by_step` of its first run.

    Examples
    --------
    >>> spec = RunSpec(prompt="The draft", max_tokens=12, target_call_seconds=0.02, draft_call_seconds=0.002)
    >>> found = race(race_settings(spec, repeats=1))
    >>> fixed = next(row for row in found["policies"] if row["policy"] == "fixed")
    >>> found["simulated"], fixed["length_by_step"][0]
    (True, 4)
    """
    steps: dict[Configuration, list[Step]] = defaultdict(list)

    def seen(turn: Turn, event: Event) -> None:
        if isinstance(event, Step) and turn.repeat == 0:
            steps[turn.configuration].append(event)

    result = run_comparison(settings, progress, seen=seen, cancelled=cancelled)
    ways = plan_of(settings).configurations[1:]
    policies = [
        {
            **row,
            "policy": spec.length_policy,
            "about": POLICIES[spec.length_policy](spec).guarantee,
            "length_by_step": [step.depth for step in steps[way]],
            "accepted_by_step": [step.n_accepted for step in steps[way]],
        }
        for way, spec, row in zip(ways, settings.specs, result["configurations"][1:], strict=True)
    ]
    return {**result, "kind": "draftscope race", "policies": policies}
