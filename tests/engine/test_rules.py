"""The rules by name: what each says of itself, and that the documentation says the same."""

import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from engine.acceptance import AcceptanceRule
from engine.rules import RULE_PARAMETERS, RULES
from engine.spec import RunSpec

DEFAULT = RunSpec()
DOCUMENTATION = (Path(__file__).parents[2] / "docs" / "rules.md").read_text(encoding="utf-8")
ROWS = {
    cells[0].strip("`"): cells
    for line in DOCUMENTATION.partition("## Length policies")[0].splitlines()
    if line.startswith("| `") and (cells := [cell.strip() for cell in line.strip("|").split("|")])
}


@pytest.mark.parametrize("name", RULES)
def test_rule_says_what_it_is(name):
    rule = RULES[name](DEFAULT)
    assert rule.name == name
    assert set(AcceptanceRule.__annotations__) <= set(dir(rule))
    assert rule.guarantee.endswith(".")
    assert rule.needs in ("draft law", "draft logits", "nothing")
    assert set(re.findall(r"\{(\w+)\}", rule.formula)) - {"draft_prob", "target_prob", "accept_prob", "draw"} <= TERMS


TERMS = {
    "left", "left_prob", "joint_ratio", "lenience", "weight", "rest", "threshold", "scale", "entropy", "asked_for",
    "number", "low", "high", "gumbel", "score", "largest", "draft_logit", "target_logit", "quotient",
    "acceptance_probability",
}  # fmt: skip


def test_parameters_are_settings_of_a_run_and_reach_the_rule():
    names = [field.name for field in fields(RunSpec)]
    for rule, parameters in RULE_PARAMETERS.items():
        for parameter in parameters:
            assert parameter in names
            other = RULES[rule](replace(DEFAULT, **{parameter: 0.25}))
            assert 0.25 in vars(other).values()
            assert vars(other) != vars(RULES[rule](DEFAULT))


def test_documentation_has_a_row_for_every_rule():
    assert list(ROWS) == list(RULES)


@pytest.mark.parametrize("name", RULES)
def test_row_of_the_documentation_is_true(name):
    rule, (_, lossless, _, _, needs, parameters, source) = RULES[name](DEFAULT), ROWS[name]
    assert (lossless == "yes") == rule.lossless
    assert needs.startswith(rule.needs)
    for parameter in RULE_PARAMETERS.get(name, ()):
        assert f"`{parameter}`" in parameters
        assert f" {getattr(DEFAULT, parameter):g}" in parameters
    assert bool(parameters) == (name in RULE_PARAMETERS)
    if name != "naive":
        assert set(re.findall(r"\d{4}\.\d{5}", rule.source)) - {"2211.17192"} <= set(
            re.findall(r"\d{4}\.\d{5}", source)
        )
