"""The one sentence that people will read."""

from engine.bench.verdict import estimate_text, verdict


def row(value, low, high, **changes):
    estimate = {"value": value, "low": low, "high": high}
    return {
        "drafter": "ngram", "draft_length": 4, "speed_up": estimate, "drafted": 100, "tokens_per_step": 1.5,
        "draft_share": 0.01, "verify_share": 0.97, "overhead_share": 0.02, "by_category": {}, "rows_per_call": 4.98,
        "verify_cost": 1.4,
    } | changes  # fmt: skip


def test_helps_when_the_whole_interval_is_above_1():
    rows = [row(1.1, 1.05, 1.2, draft_length=1), row(1.31, 1.27, 1.36), {"speed_up": None}]
    assert verdict(rows) == (
        "helps: 1.31x (1.27-1.36) with ngram at draft length 4; a step yields 1.50 tokens and costs 1.15 plain tokens "
        "(a call for 5 rows costs 1.40 of one, draft 1%, verify 97%, overhead 2%)"
    )


def test_helps_but_not_everywhere():
    by_category = {"chat": {"value": 0.9}, "code": {"value": 1.8}, "story": None}
    assert verdict([row(1.31, 1.27, 1.36, by_category=by_category)]).endswith("; slower than plain in: chat")


def test_hurts_when_the_whole_interval_is_below_1_and_says_why():
    told = verdict([row(0.8, 0.7, 0.9), row(0.5, 0.4, 0.6)])
    assert told.startswith("hurts: the best is 0.80x (0.70-0.90) with ngram at draft length 4, because a step yields")
    assert "costs 1.88 plain tokens (a call for 5 rows costs 1.40 of one, draft 1%" in told


def test_rows_of_a_call_are_those_that_it_had_and_not_those_that_it_could_have_had():
    assert "a call for 2.3 rows costs 1.10 of one" in verdict([row(1.2, 1.1, 1.3, rows_per_call=2.31, verify_cost=1.1)])
    assert "plain tokens (draft 1%" in verdict([row(1.2, 1.1, 1.3, verify_cost=None)])


def test_no_difference_when_the_interval_holds_1():
    assert verdict([row(1.02, 0.98, 1.1)]).startswith("makes no clear difference: the best is 1.02x (0.98-1.10)")


def test_an_interval_that_a_reader_sees_touch_1_makes_no_clear_difference():
    told = "makes no clear difference: the best is"
    assert verdict([row(1.14, 1.003, 1.35)]).startswith(f"{told} 1.14x (1.00-1.35)")
    assert verdict([row(0.9, 0.8, 0.997)]).startswith(f"{told} 0.90x (0.80-1.00)")
    assert verdict([row(1.14, 1.006, 1.35)]).startswith("helps: 1.14x (1.01-1.35)")


def test_one_run_is_not_enough():
    assert verdict([row(1.5, None, None)]).startswith("not sure: 1.50x with ngram at draft length 4, from one run;")


def test_a_drafter_that_never_drafts_is_told():
    assert "nothing was drafted" in verdict([row(1.0, 0.9, 1.1, drafted=0)])


def test_nothing_to_judge():
    assert verdict([{"speed_up": None}]).startswith("not known")
    assert estimate_text(None) == "n/a"
