"""Where drafts fail, against runs written by hand and against counts made afresh."""

from collections import Counter

import pytest

from engine.build import build
from engine.failures import Instead, failures
from engine.intervals import rate
from engine.metrics import measure
from engine.spec import RunSpec
from engine.values import Decision, Finished, Started, Step


def accepted(position, token, text, accept_prob=1.0, **more):
    return Decision(position, "accepted", token, token, True, accept_prob=accept_prob, draft_prob=0.5, target_prob=0.5,
                    draft_text=text, target_text=text, **more)  # fmt: skip


def rejected(position, token, text, instead, instead_text, accept_prob=0.25, draft_prob=0.8, target_prob=0.2, **more):
    return Decision(position, "rejected", token, instead, False, accept_prob=accept_prob, draft_prob=draft_prob,
                    target_prob=target_prob, draft_text=text, target_text=instead_text, **more)  # fmt: skip


def unreached(position, token, text):
    return Decision(position, "unreached", token, draft_text=text)


def bonus(position, token, text, **more):
    return Decision(position, "bonus", target_token=token, target_text=text, **more)


def steps(*decisions):
    for index, row in enumerate(decisions):
        emitted = tuple(d.target_token for d in row if d.target_token is not None and not d.discarded)
        yield Step(index, 1, row, emitted, 0.1, 0.1, 0.1, 0.3 * (index + 1))


def run(*decisions, prompt_text="The end.\n"):
    yield Started("t", "d", "exact", True, 0, (1,), prompt_text=prompt_text)
    yield from steps(*decisions)


BY_HAND = (
    # behind the prompt's line break; then inside a word; then refused, and the rest never judged
    (accepted(0, 1, "dra"), accepted(1, 2, "ft", 0.75), rejected(2, 3, " model", 4, "."), unreached(3, 5, " is")),
    (accepted(0, 6, "\n"), rejected(1, 3, " model", 7, " target", draft_prob=0.6, target_prob=0.0)),
    (rejected(0, 3, " model", 7, " target", draft_prob=0.4, target_prob=0.1), unreached(1, 8, " 42")),
    (accepted(0, 3, " model"), accepted(1, 8, " 42"), bonus(2, 9, " {")),
    (Decision(0, "plain", target_token=1, target_text="dra"),),
)


def kinds_of(found):
    return {row.kind: (row.acceptance.successes, row.acceptance.trials, row.drafted) for row in found.kinds}


def test_every_tested_token_counts_in_its_kind():
    assert kinds_of(failures(run(*BY_HAND))) == {
        "after a newline": (1, 2, 2),  # "dra" behind the prompt, " model" behind "\n"
        "inside a word": (1, 1, 1),  # "ft"
        "start of word": (1, 3, 4),  # " model" three times; " is" was never judged
        "whitespace": (1, 1, 1),  # "\n"
        "digits": (1, 1, 2),  # " 42" once judged, once not
    }


def test_rates_have_wilsons_interval():
    by_kind = {row.kind: row.acceptance for row in failures(run(*BY_HAND)).kinds}
    assert by_kind["start of word"] == rate(1, 3)


def test_a_kind_that_was_never_judged_has_no_rate():
    found = failures(run((rejected(0, 1, "The", 2, "A"), unreached(1, 3, " 7"))))
    [digits] = [row for row in found.kinds if row.kind == "digits"]
    assert (digits.drafted, digits.acceptance.value) == (1, None)


def test_the_most_refused_proposal_comes_first_with_what_was_said_instead():
    first, *others = failures(run(*BY_HAND)).proposals
    assert others == []
    assert (first.token, first.text, first.kind, first.tested, first.rejected) == (3, " model", "start of word", 4, 3)
    assert first.instead == (Instead(7, " target", 2), Instead(4, ".", 1))
    assert first.draft_prob == pytest.approx((0.8 + 0.6 + 0.4) / 3)
    assert first.target_prob == pytest.approx((0.2 + 0.0 + 0.1) / 3)


def test_proposals_are_sorted_by_refusals_and_then_by_how_seldom_they_passed():
    rows = [(rejected(0, token, f" {token}", 0, "x"),) for token in (5, 6, 6, 7)] + [
        (accepted(0, 5, " 5"), bonus(1, 1, "y"))
    ]
    assert [row.token for row in failures(run(*rows)).proposals] == [6, 7, 5]


def test_the_text_is_shaded_by_the_acceptance_probability_at_each_place():
    shaded = failures(run(*BY_HAND)).text
    assert "".join(token.text for token in shaded) == "draft.\n target target model 42 {dra"
    assert [token.accept_prob for token in shaded] == [1.0, 0.75, 0.25, 1.0, 0.25, 0.25, 1.0, 1.0, None, None]
    assert [token.refused for token in shaded if token.outcome == "rejected"] == [" model"] * 3
    assert [(token.step, token.position) for token in shaded][:4] == [(0, 0), (0, 1), (0, 2), (1, 0)]


def test_discarded_tokens_are_no_part_of_the_text_but_were_judged():
    found = failures(
        run((accepted(0, 1, "The"), accepted(1, 2, " end", discarded=True), bonus(2, 3, "x", discarded=True)))
    )
    assert [token.text for token in found.text] == ["The"]
    assert sum(row.acceptance.trials for row in found.kinds) == 2


def test_positions_are_conditional_on_being_reached_and_not():
    positions = failures(run(*BY_HAND)).positions
    assert [row.position for row in positions] == [1, 2, 3, 4]
    assert [row.conditional for row in positions] == [rate(3, 4), rate(2, 3), rate(0, 1), rate(0, 0)]
    assert [row.survival for row in positions] == [rate(3, 4), rate(2, 4), rate(0, 1), rate(0, 1)]


def test_a_run_that_drafts_nothing_has_nothing_to_show_but_its_text():
    found = failures(build(RunSpec(prompt="The draft", drafter="none", max_tokens=8)).events())
    assert (found.kinds, found.positions, found.proposals) == ((), (), ())
    assert [token.accept_prob for token in found.text] == [None] * 8


def test_of_no_events_there_is_nothing():
    found = failures([])
    assert (found.kinds, found.positions, found.proposals, found.text) == ((), (), (), ())


@pytest.mark.parametrize(
    "settings",
    [{}, {"rule": "naive"}, {"drafter": "ngram", "temperature": 0.0}, {"stop": ("token",), "draft_length": 8}],
)
def test_the_counts_of_real_runs_add_up(settings):
    for seed in range(8):
        events = list(build(RunSpec(prompt="The draft", max_tokens=90, seed=seed, **settings)).events())
        figures, found = measure(events), failures(events)
        assert sum(row.drafted for row in found.kinds) == figures.drafted
        assert sum(row.acceptance.trials for row in found.kinds) == figures.accepted + figures.rejected
        assert sum(row.acceptance.successes for row in found.kinds) == figures.accepted
        assert [row.conditional.value for row in found.positions] == [row.conditional for row in figures.per_position]
        assert [row.survival.value for row in found.positions] == [row.survival for row in figures.per_position]
        assert len(found.text) == figures.tokens_generated
        refused = Counter(
            decision.draft_token
            for event in events
            if isinstance(event, Step)
            for decision in event.decisions
            if decision.outcome == "rejected"
        )
        assert {row.token: row.rejected for row in found.proposals} == dict(refused.most_common()[:50])
        finished = events[-1]
        assert isinstance(finished, Finished)
        if not settings.get("stop"):
            assert "".join(token.text for token in found.text) == finished.text


@pytest.mark.parametrize("rule", ["tree-distinct", "tree-match"])
def test_siblings_count_one_by_one_by_kind_and_once_by_position(rule):
    spec = RunSpec(prompt="The draft model", max_tokens=80, rule=rule, temperature=1.0)
    events = list(build(spec).events())
    found, figures = failures(events), measure(events)
    judged = figures.accepted + figures.rejected + figures.declined
    assert figures.declined > 0
    assert sum(row.drafted for row in found.kinds) == figures.drafted
    assert sum(row.acceptance.trials for row in found.kinds) == judged
    assert sum(row.rejected for row in found.proposals) == figures.rejected + figures.declined
    assert sum(row.conditional.trials for row in found.positions) == figures.accepted + figures.rejected
