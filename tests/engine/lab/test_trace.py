"""One run, judged by every rule: against the run itself, and against the laws at each of its places."""

import csv
import json
from itertools import pairwise

import pytest

from engine.acceptance import Ensemble, ExactRejection, Lenience
from engine.build import build
from engine.errors import DraftscopeError, RunDiffers, SettingError
from engine.lab.cases import CHAIN_RULES
from engine.lab.trace import trace_csv, trace_run
from engine.laws import total_variation
from engine.rules import RULES
from engine.sampling import Noise, Rows, Sampling, law
from engine.spec import RunSpec
from engine.stopping import Stopped
from engine.values import Draft, Finished, Step

SPEC = RunSpec(prompt="The draft model", temperature=1.0, max_tokens=16, draft_length=3, seed=5)


def steps_of(spec):
    return [event for event in build(spec).events() if isinstance(event, Step)]


def ids_of(spec):
    *_, finished = build(spec).events()
    assert isinstance(finished, Finished)
    return finished.ids


@pytest.fixture(scope="module")
def trace():
    return trace_run(SPEC)


@pytest.mark.parametrize("rule", RULES)
def test_the_own_rule_accepts_what_the_run_accepted(rule):
    spec = RunSpec(prompt="The draft model", max_tokens=5, rule=rule, draft_length=3, tree_width=1)
    found = trace_run(spec)
    steps = steps_of(spec)
    assert [step.judged[rule].accepted for step in found.steps] == [step.n_accepted for step in steps]
    assert [step.drafted for step in found.steps] == [step.n_drafted for step in steps]
    assert found.rules[0].name == rule
    assert found.rules[0].own
    assert found.tokens == 5


def test_every_rule_judges_every_step(trace):
    assert [rule.name for rule in trace.rules] == list(CHAIN_RULES)
    assert all(set(step.judged) == set(CHAIN_RULES) for step in trace.steps)
    for rule in trace.rules:
        judged = [step.judged[rule.name] for step in trace.steps]
        assert rule.accepted == sum(one.accepted for one in judged)
        assert rule.tokens_per_step == pytest.approx(rule.accepted / len(judged) + 1)
        assert all(0 <= one.accepted <= step.drafted for one, step in zip(judged, trace.steps, strict=True))
        assert all(1 <= one.expected_tokens <= step.drafted + 1 for one, step in zip(judged, trace.steps, strict=True))


def test_lossless_rules_have_no_bias_and_lossy_ones_have_that_of_their_closed_form(trace):
    pair = build(SPEC).loaded
    plain = Sampling(temperature=1)
    context = list(build(SPEC).prompt)
    for step, judged in zip(steps_of(SPEC), trace.steps, strict=True):
        target, draft = (law(model.logits(context)[0], plain) for model in (pair.model, pair.partner))
        context.extend(step.emitted)
        if not judged.drafted:
            continue
        for name in ("exact", "block", "sample-match", "gumbel"):
            assert judged.judged[name].bias <= 1e-12
        assert judged.judged["lenience"].bias == pytest.approx(Lenience(0.5).distance(target, draft), abs=1e-9)
        assert judged.judged["ensemble"].bias == pytest.approx(Ensemble(0.8).distance(target, draft), abs=1e-9)
        assert 0.2 * total_variation(target, draft) == pytest.approx(judged.judged["ensemble"].bias, abs=1e-9)


def test_another_rule_accepts_what_it_would_with_the_same_draws(trace):
    """Judged anew from the events of the run alone."""
    built, rules = build(SPEC), {name: make(SPEC) for name, make in RULES.items()}
    context = list(built.prompt)
    for step, judged in zip(steps_of(SPEC), trace.steps, strict=True):
        tokens = tuple(one.draft_token for one in step.decisions if one.draft_token is not None)
        before = [[*context, *tokens[:place]] for place in range(len(tokens) + 1)]
        rows = [built.loaded.partner.logits(ids)[0] for ids in before[: len(tokens)]]
        laws = tuple(law(row, built.sampling) for row in rows)
        draft = Draft(tokens, laws, tuple(float(row[token]) for row, token in zip(rows, tokens, strict=True)))
        target = Rows(built.loaded.model.logits(before[-1], len(tokens) + 1), built.sampling)
        noise = Noise(SPEC.seed).of_step(len(context))
        for name in ("block", "lenience", "ensemble", "typical", "naive"):
            verdict = rules[name].judge(draft, target, noise=noise, start=len(context))
            assert verdict.n_accepted == judged.judged[name].accepted, name
        context.extend(step.emitted)


def test_lenient_rules_expect_no_less_than_the_exact_one(trace):
    expected = {rule.name: rule.expected_tokens_per_step for rule in trace.rules}
    assert expected["lenience"] >= expected["exact"]
    assert expected["ensemble"] >= expected["exact"]


def test_at_temperature_zero_all_lossless_rules_accept_the_same():
    found = trace_run(RunSpec(prompt="The draft model", temperature=0.0, max_tokens=20))
    lossless = [rule for rule in found.rules if rule.lossless]
    assert len({rule.accepted for rule in lossless}) == 1
    assert all(rule.largest_bias == 0 and rule.keeps_the_law for rule in lossless)
    assert all(rule.other_first == 0 for rule in found.rules)
    naive = next(rule for rule in found.rules if rule.name == "naive")
    assert not naive.keeps_the_law


def test_judging_changes_nothing_of_the_run():
    ids = ids_of(SPEC)
    assert trace_run(SPEC, ids).tokens == len(ids)


def test_a_run_that_gives_another_text_is_refused():
    ids = list(ids_of(SPEC))
    ids[7] += 1
    with pytest.raises(RunDiffers, match=rf"token 8 is id {ids[7] - 1} and was id {ids[7]}"):
        trace_run(SPEC, ids)
    with pytest.raises(RunDiffers, match="ends after 16 tokens now, and had 17"):
        trace_run(SPEC, [*ids_of(SPEC), 1])


def test_a_run_that_was_stopped_is_judged_as_far_as_it_went():
    *_, last = steps_of(SPEC)[:4]
    n_tokens = last.context_length - len(build(SPEC).prompt) + len(last.emitted)
    found = trace_run(SPEC, ids_of(SPEC)[:n_tokens])
    assert (len(found.steps), found.tokens, found.partial) == (4, n_tokens, False)


def test_stopping_keeps_what_was_judged():
    told = []
    found = trace_run(SPEC, progress=lambda *how_far: told.append(how_far), cancelled=lambda: len(told) >= 3)
    assert (len(found.steps), found.partial) == (3, True)
    assert all(total == 16 for _, total in told)
    assert all(before < after for (before, _), (after, _) in pairwise(told))
    with pytest.raises(Stopped):
        trace_run(SPEC, cancelled=lambda: True)


def test_a_rule_that_cannot_judge_is_left_out_with_its_reason():
    found = trace_run(RunSpec(prompt="the draft model and the draft", drafter="ngram", temperature=0.0, max_tokens=30))
    naive = next(rule for rule in found.rules if rule.name == "naive")
    assert "raw logits" in naive.refusal
    assert any(note.startswith("naive: could not judge every step") for note in found.notes)
    drafting = [step for step in found.steps if step.drafted]
    assert drafting
    assert all("naive" not in step.judged for step in drafting)


def test_penalties_hide_a_bias_and_nothing_else():
    """The naive rule would compare the raw logit of the most probable token, which the penalised law does not tell."""
    found = trace_run(RunSpec(prompt="The draft model", max_tokens=16, seed=5, frequency_penalty=1.0))
    naive = next(rule for rule in found.rules if rule.name == "naive")
    assert naive.refusal == ""
    assert naive.steps == len(found.steps)
    drafting = [step.judged["naive"] for step in found.steps if step.drafted]
    assert [one.bias is None for one in drafting] == [not one.own_first for one in drafting]
    assert naive.without_bias == sum(one.bias is None for one in drafting) > 0
    assert not naive.keeps_the_law
    assert any(f"At {naive.without_bias} steps its bias is not known" in note for note in found.notes)
    assert all(not rule.without_bias for rule in found.rules if rule.name != "naive")
    json.dumps(found.to_dict(), allow_nan=False)


def test_rules_that_want_other_drafts_say_at_how_many_steps(trace):
    pair, context = build(SPEC).loaded, list(build(SPEC).prompt)
    others = 0
    for step in steps_of(SPEC):
        if step.n_drafted:
            others += int(pair.partner.logits(context)[0].argmax()) != step.decisions[0].draft_token
        context.extend(step.emitted)
    wanting = ("sample-match", "typical", "naive")
    assert others > 0
    expected = {name: others if name in wanting else 0 for name in CHAIN_RULES}
    assert {rule.name: rule.other_first for rule in trace.rules} == expected
    assert trace.notes[0].startswith(f"{', '.join(wanting)}: want the draft's most probable tokens")
    assert f"At {others} of {len(trace.steps)} steps" in trace.notes[0]


def test_shared_numbers_are_told_both_ways(trace):
    assert any(note.startswith("gumbel: its drafts would be drawn with the target's own") for note in trace.notes)
    coupled = trace_run(RunSpec(prompt="The draft model", rule="gumbel", max_tokens=6))
    assert not any(note.startswith("gumbel") for note in coupled.notes)
    assert any(note.startswith("sample-match: these drafts were drawn with the target's own") for note in coupled.notes)
    accepted = {rule.name: rule.accepted for rule in coupled.rules}
    assert accepted["sample-match"] == accepted["gumbel"]


@pytest.mark.parametrize(
    "settings",
    [{"temperature": 0.0}, {"temperature": 0.0, "rule": "gumbel"}, {"drafter": "none"}, {"drafter": "ngram"}],
    ids=str,
)
def test_nothing_is_told_of_shared_numbers_where_no_draft_was_drawn(settings):
    found = trace_run(RunSpec(prompt="the draft model and the draft", max_tokens=12, **settings))
    assert all(rule.shared_numbers is None for rule in found.rules)
    assert not any("random numbers" in note for note in found.notes)


def test_a_run_that_drafts_trees_is_refused():
    spec = RunSpec(prompt="The draft model", rule="tree-match", max_tokens=6, tree_width=2)
    with pytest.raises(SettingError, match="this run drafts trees"):
        trace_run(spec)
    assert trace_run(RunSpec(prompt="The draft model", rule="tree-match", max_tokens=4, tree_width=1)).rules[0].own


def test_a_run_that_fails_is_told(monkeypatch):
    def broken(self, draft, rows, *, noise, start):
        raise ValueError("no verdict")

    monkeypatch.setattr(ExactRejection, "judge", broken)
    with pytest.raises(DraftscopeError, match="ended with an error: step 1: ValueError: no verdict"):
        trace_run(SPEC)


def test_bad_settings_are_told_before_anything_runs():
    with pytest.raises(SettingError, match="the rule is 'best'"):
        trace_run(RunSpec(prompt="The", rule="best"))


def test_a_trace_as_data_and_as_csv(trace):
    data = json.loads(json.dumps(trace.to_dict(), allow_nan=False))
    assert data["kind"] == "draftscope trace"
    assert len(data["steps"]) == len(trace.steps)
    rows = list(csv.DictReader(line.strip() for line in trace_csv(trace)))
    assert len(rows) == len(trace.steps) * len(CHAIN_RULES)
    assert sum(int(row["accepted"]) for row in rows if row["rule"] == "exact") == trace.rules[0].accepted
