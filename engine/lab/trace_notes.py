"""What to mind of single rules on a trace, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.acceptance import ExactRejection, GumbelMatch, SampleMatch
from engine.figure_text import counted
from engine.lab.cases import CHAIN_RULES
from engine.lab.trace_rules import RuleOnTrace
from engine.rules import RULES

__all__ = ["notes"]


def notes(rules: Sequence[RuleOnTrace]) -> Iterator[str]:
    """The sentences about the rules of a trace, the run's own first."""
    yield from _other_drafts(rules)
    for rule in rules:
        yield from _alone(rule)
    yield from _not_known(rules)
    yield from _not_looked_at(rules)
    yield from _left_out(rules)


def _other_drafts(rules: Sequence[RuleOnTrace]) -> Iterator[str]:
    """The rules that want argmax drafts, together where they say the same."""
    found: dict[tuple[int, int], list[str]] = {}
    for rule in rules:
        if rule.other_first:
            found.setdefault((rule.other_first, rule.steps), []).append(rule.name)
    for (other_first, steps), names in found.items():
        verb, pronoun, own = ("wants", "it", "its") if len(names) == 1 else ("want", "they", "their")
        yield (
            f"{', '.join(names)}: {verb} the draft's most probable tokens, and these were drawn. At {other_first} of "
            f"{steps} steps {pronoun} would have drafted another first token. What {pronoun} would accept is told for "
            f"the drafts that are there, {own} bias for the others."
        )


def _alone(rule: RuleOnTrace) -> Iterator[str]:
    if rule.refusal:
        yield f"{rule.name}: could not judge every step; {rule.refusal}."
    if rule.name == GumbelMatch.name and rule.shared_numbers is False:
        yield (
            f"{rule.name}: its drafts would be drawn with the target's own random numbers, and these were not, so that "
            f"with the run's draws it accepts as {SampleMatch.name} does. Its expected tokens are those of drafts "
            "drawn so."
        )
    if rule.name != GumbelMatch.name and rule.shared_numbers:
        yield (
            f"{rule.name}: these drafts were drawn with the target's own random numbers, so that with the run's draws "
            f"it accepts as {GumbelMatch.name} does. Its expected tokens are those of draws of its own."
        )


def _not_known(rules: Sequence[RuleOnTrace]) -> Iterator[str]:
    for rule in rules:
        if rule.without_bias:
            yield (
                f"{rule.name}: compares raw logits, and with penalties those of tokens that were not drafted are not "
                f"known here. At {counted(rule.without_bias, 'step')} its bias is not known; mean and largest are of "
                "the others."
            )


def _not_looked_at(rules: Sequence[RuleOnTrace]) -> Iterator[str]:
    """The rules whose biases are not known to the last digit."""
    found = [rule for rule in rules if rule.bias_unknown]
    if found:
        names, unknown = ", ".join(rule.name for rule in found), max(rule.bias_unknown for rule in found)
        yield f"{names}: bias known to within {unknown:.2g}, the probability of first tokens that were not looked at."


def _left_out(rules: Sequence[RuleOnTrace]) -> Iterator[str]:
    """The rules for trees, which do not look on."""
    names = [name for name in RULES if name not in CHAIN_RULES and name not in [rule.name for rule in rules]]
    if names:
        yield (
            f"{', '.join(names)}: left out, for they judge trees, and on a chain as here they are "
            f"{ExactRejection.name} or {SampleMatch.name}."
        )
