"""The statistical check: it finds what is wrong, and nothing where nothing is."""

import json

import pytest

from engine.acceptance import ExactRejection
from engine.errors import DraftscopeError, SettingError
from engine.intervals import rate
from engine.lab import check as module
from engine.lab.check import statistical_check
from engine.rules import RULES
from engine.sampling import Purpose
from engine.spec import RunSpec
from engine.stopping import Stopped
from engine.values import Verdict

SPEC = RunSpec(prompt="The draft model", temperature=1.0, draft_length=3)


@pytest.mark.parametrize("rule", [name for name, make in RULES.items() if make(SPEC).lossless])
def test_no_sign_against_a_lossless_rule(rule):
    result = statistical_check(RunSpec(prompt="The draft model", temperature=1.0, rule=rule), n_runs=400)
    assert result.p_value > 0.001
    assert result.conclusion != "differs"
    assert result.runs == sum(cell.observed for cell in result.cells) == 400
    assert sum(cell.expected for cell in result.cells) == pytest.approx(400)
    assert all(cell.expected >= 5 for cell in result.cells)
    assert result.degrees == len(result.cells) - 1
    assert result.drafted > result.accepted > 0


@pytest.mark.parametrize(("rule", "settings"), [("naive", {}), ("lenience", {"lenience": 0.05}), ("typical", {})])
def test_a_lossy_rule_is_found_out(rule, settings):
    spec = RunSpec(prompt="The draft model", temperature=1.0, rule=rule, **settings)
    result = statistical_check(spec, n_runs=400, n_tokens=2)
    assert result.conclusion == "differs"
    assert result.p_value < 1e-6
    assert result.sentence.startswith("Differs: p")
    assert "said to be lossless" not in result.sentence


def test_a_broken_rule_that_calls_itself_lossless_is_named_so(monkeypatch):
    class Recovers(ExactRejection):
        """Replaces a refused token from the target's law instead of the residual."""

        def judge(self, draft, rows, *, noise, start):
            tested = super().judge(draft, rows, noise=noise, start=start).tested
            n_kept = sum(test.accepted for test in tested)
            return Verdict(tested, noise.draw(rows.law(n_kept), start + n_kept, Purpose.TARGET))

    monkeypatch.setitem(RULES, "exact", lambda spec: Recovers())
    result = statistical_check(SPEC, n_runs=1500, n_tokens=1)
    assert result.conclusion == "differs"
    assert result.sentence.endswith("The rule is said to be lossless, so something is wrong.")


@pytest.mark.parametrize("drafter", ["none", "ngram", "model:markov"])
def test_any_drafter_can_be_checked(drafter):
    spec = RunSpec(prompt="the draft model and the draft", drafter=drafter, temperature=1.0)
    assert statistical_check(spec, n_runs=200, n_tokens=1).p_value > 0.001


def test_the_other_embedded_pair_can_be_checked():
    result = statistical_check(RunSpec(target="noisy", prompt="3 14 15", temperature=1.0), n_runs=300, n_tokens=3)
    assert result.p_value > 0.001
    assert result.tokens == 3


def test_penalties_are_in_the_expected_law():
    spec = RunSpec(prompt="The draft model", temperature=1.0, frequency_penalty=2.0, repetition_penalty=1.5)
    assert statistical_check(spec, n_runs=300, n_tokens=2).p_value > 0.001


def test_a_cell_has_the_interval_of_its_count():
    result = statistical_check(SPEC, n_runs=200, n_tokens=1)
    for cell in result.cells:
        share = rate(cell.observed, 200)
        assert (cell.low, cell.high) == pytest.approx((200 * share.low, 200 * share.high))
        assert 0 <= cell.low <= cell.observed <= cell.high <= 200
    inside = sum(cell.low <= cell.expected <= cell.high for cell in result.cells)
    assert inside >= 0.8 * len(result.cells)


def test_at_temperature_zero_there_is_one_outcome():
    result = statistical_check(RunSpec(prompt="The draft model", temperature=0.0), n_runs=20, n_tokens=3)
    assert (result.degrees, result.p_value, result.conclusion) == (0, 1.0, "no sign")
    assert "one outcome" in result.sentence
    assert [cell.observed for cell in result.cells] == [20]


@pytest.mark.parametrize("n_runs", [1, 4, 12])
def test_too_few_runs_are_a_conclusion_of_their_own(n_runs):
    result = statistical_check(SPEC, n_runs=n_runs)
    assert (result.conclusion, result.degrees) == ("too few", 0)
    assert result.sentence.startswith("Too few runs to tell anything: no beginning is expected 5 times")
    assert [(cell.text, cell.observed) for cell in result.cells] == [("all others", n_runs)]


def test_what_the_target_never_says_is_told():
    result = statistical_check(
        RunSpec(prompt="The draft model", temperature=0.0, rule="naive", agreement=-1.0), n_runs=20, n_tokens=1
    )
    assert result.statistic is None
    assert result.p_value == 0.0
    assert "20 runs began in a way that the target never does" in result.sentence
    json.dumps(result.to_dict(), allow_nan=False)


def test_nothing_is_cut_within_the_tokens_that_are_looked_at():
    short = statistical_check(RunSpec(prompt="The draft", max_tokens=1, stop=("a",), draft_length=8), n_runs=50)
    assert short.drafted > 50  # with one token left nothing would be drafted


def test_the_same_seed_gives_the_same_check_and_another_one_another():
    first, again, other = (
        statistical_check(RunSpec(prompt="The draft", seed=seed), n_runs=60) for seed in (3, 3, 1000)
    )
    assert first == again
    assert [cell.observed for cell in first.cells] != [cell.observed for cell in other.cells]


def test_stopping_keeps_what_was_counted():
    done = []
    result = statistical_check(
        SPEC, n_runs=100, progress=lambda *far: done.append(far), cancelled=lambda: len(done) == 40
    )
    assert (result.runs, result.runs_planned, result.partial) == (40, 100, True)
    assert done[-1] == (40, 100)
    assert result.to_dict()["partial"] is True
    with pytest.raises(Stopped):
        statistical_check(SPEC, cancelled=lambda: True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_runs": 0}, "takes 1 to 100000"),
        ({"n_runs": 10**6}, "takes 1 to 100000"),
        ({"n_tokens": 0}, "looks at 1 to 4"),
        ({"n_tokens": 9}, "looks at 1 to 4"),
    ],
)
def test_numbers_that_cannot_be_used_are_told(options, words):
    with pytest.raises(SettingError, match=words):
        statistical_check(SPEC, **options)


def test_seeds_must_fit():
    with pytest.raises(SettingError, match="with 10 runs it must be at most"):
        statistical_check(RunSpec(prompt="The", seed=2**64 - 1), n_runs=10)


def test_a_large_vocabulary_is_refused(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_VOCABULARY", 100)
    with pytest.raises(SettingError, match="markov has 839 tokens"):
        statistical_check(SPEC, n_runs=10)


def test_a_run_that_fails_is_told(monkeypatch):
    class Broken(ExactRejection):
        def judge(self, draft, rows, *, noise, start):
            raise ValueError("no verdict")

    monkeypatch.setitem(RULES, "exact", lambda spec: Broken())
    with pytest.raises(DraftscopeError, match="the run with seed 0 ended: step 1: ValueError: no verdict"):
        statistical_check(SPEC, n_runs=10)
