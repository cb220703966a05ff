"""The figures of a run in words, whatever is not known of it yet."""

import pytest

from engine.cli.summary import summary
from engine.report import Report
from tests.engine.kept_runs import EVENTS


def lines_of(record):
    return dict(line.split(maxsplit=1) for line in summary(record).splitlines())


def test_a_run_that_ended_says_by_what():
    lines = lines_of(Report(EVENTS).record())
    assert lines["run"] == "target, drafter model:draft, rule exact, seed 7 (lossless)"
    assert lines["tokens"].endswith("; ended by length")


def test_a_run_without_an_end_says_so():
    assert lines_of(Report(EVENTS[:4]).record())["tokens"].endswith("; without an end")


def test_a_run_that_has_not_started_promises_nothing():
    lines = lines_of(Report().record())
    assert lines["run"] == "not started"
    assert "None" not in summary(Report().record())


@pytest.mark.parametrize(("lossless", "words"), [(True, " (lossless)"), (False, " (lossy)"), (None, "")])
def test_what_the_rule_promises_is_told_where_it_is_known(lossless, words):
    record = Report(EVENTS).record() | {"lossless": lossless}
    assert lines_of(record)["run"] == f"target, drafter model:draft, rule exact, seed 7{words}"
