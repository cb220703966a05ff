"""The log of a run as the page reads it."""

import json
import random
from dataclasses import fields, replace

import pytest

from dashboard import event_log
from dashboard.event_log import MOST_ENTRIES, EventLog
from engine import Drafted, Figures, RunSpec, Started, Step, Tally, build


def filled_log(**settings):
    log = EventLog()
    events = list(build(RunSpec(prompt="The draft", **settings)).events())
    for event in events:
        log.add(event)
    return log, events


def test_reading_in_increments_gives_every_entry_once():
    log, events = filled_log(max_tokens=40)
    cursor, entries = 0, []
    while cursor < len(log):
        answer = json.loads(log.since(cursor))
        assert answer["from"] == cursor
        entries += answer["entries"][:7]
        cursor += len(answer["entries"][:7])
    drawn = [event for event in events if isinstance(event, Drafted | Step)]
    assert entries.pop(0) == ["prompt", "The draft"]
    assert [entry[0] for entry in entries] == ["draft" if isinstance(event, Drafted) else "step" for event in drawn]
    assert [entry[1] for entry in entries] == [event.index for event in drawn]


def test_how_far_the_loading_is_is_told_until_it_is_over():
    log = EventLog()
    assert json.loads(log.since(0))["loading"] is None
    log.load("packing", 3, 30)
    assert json.loads(log.since(0))["loading"] == {"doing": "packing", "done": 3, "total": 30}
    log.state = "prefill"
    assert json.loads(log.since(0))["loading"] is None


def test_a_step_entry_carries_its_decisions():
    log, events = filled_log(max_tokens=12, seed=3)
    entries = [entry for entry in json.loads(log.since(0))["entries"] if entry[0] == "step"]
    steps = [event for event in events if isinstance(event, Step)]
    for entry, step in zip(entries, steps, strict=True):
        for wire, decision in zip(entry[2], step.decisions, strict=True):
            assert wire[:4] == [
                decision.outcome,
                decision.draft_token,
                decision.draft_text,
                decision.target_token,
            ]
            assert wire[4:7] == [decision.target_text, decision.target_parts, int(decision.discarded)]


def test_answers_are_bounded_and_say_that_there_is_more():
    log, _ = filled_log(drafter="none", max_tokens=MOST_ENTRIES)
    answer = json.loads(log.since(0))
    assert len(answer["entries"]) == MOST_ENTRIES
    assert answer["more"]
    assert answer["next"] == MOST_ENTRIES
    assert not json.loads(log.since(len(log)))["more"]


def test_the_size_of_an_answer_does_not_grow_with_the_run():
    short, _ = filled_log(max_tokens=50)
    long, _ = filled_log(max_tokens=2000)
    size_of_last = [len(log.since(len(log) - 10)) for log in (short, long)]
    assert size_of_last[1] < 1.2 * size_of_last[0]


def test_a_cursor_behind_the_end_gives_nothing_new():
    log, _ = filled_log(max_tokens=4)
    answer = json.loads(log.since(10_000))
    assert answer["entries"] == []
    assert answer["next"] == 10_000


def test_the_figures_are_the_engines():
    log, _ = filled_log(max_tokens=30)
    figures = json.loads(log.since(0))["figures"]
    assert figures["tokens_generated"] == 30
    assert figures["identities_ok"] is True
    assert figures["per_position"][0]["position"] == 1


def test_a_simulated_run_and_a_lossy_rule_are_marked():
    log, _ = filled_log(max_tokens=4, target_call_seconds=0.05)
    assert json.loads(log.since(0))["simulated"] is True
    log, _ = filled_log(max_tokens=4, rule="naive")
    assert json.loads(log.since(0))["lossless"] is False


def test_a_run_that_could_not_start_is_finished_with_its_error():
    log = EventLog()
    log.fail("no such model")
    answer = json.loads(log.since(0))
    assert (answer["state"], answer["reason"], answer["error"]) == ("finished", "error", "no such model")


def test_a_step_is_explained_on_demand_with_six_digits():
    log, events = filled_log(max_tokens=20, seed=3, probe=4)
    for step in (event for event in events if isinstance(event, Step)):
        told = json.loads(log.step(step.index))
        assert told["positions"][0]["words"]
        assert [row["token"] for row in told["choice"]["alternatives"]] == [
            row.token for row in step.evidence.choice.alternatives
        ]
        assert told["choice"]["target_entropy"] == float(f"{step.evidence.choice.target_entropy:.6g}")
    assert log.step(len(events)) is None


@pytest.mark.parametrize(
    ("accept_prob", "draw"), [(0.52340012, 0.52340043), (1.0, 0.99999999), (1.2345678e-6, 1.2345679e-6)]
)
def test_a_draw_and_what_it_is_held_against_are_told_apart(accept_prob, draw):
    log, events = filled_log(max_tokens=4, drafter="model")
    step = next(event for event in events if isinstance(event, Step) and event.decisions[0].draw is not None)
    decision = replace(step.decisions[0], accept_prob=accept_prob, draw=draw)
    log.add(replace(step, index=99, decisions=(decision,)))
    told = json.loads(log.step(99))["positions"][0]
    [entry] = [entry for entry in json.loads(log.since(0))["entries"] if entry[:2] == ["step", 99]]
    for kept, drawn in ((told["accept_prob"], told["draw"]), entry[2][0][9:11]):
        assert (kept < drawn) == (accept_prob < draw)
        assert kept != drawn
        assert len(str(drawn)) < 14


def test_a_log_that_is_not_replayed_tells_the_same_and_keeps_less():
    log, events = filled_log(max_tokens=12, seed=3)
    bare = EventLog(replayed=False)
    for event in events:
        bare.add(event)
    assert bare.since(0) == log.since(0)
    assert bare.step(0) is None
    assert json.loads(bare.figures_since(0))["rows"] == []


def test_a_step_is_explained_by_the_rule_of_its_run():
    log, _ = filled_log(max_tokens=4, rule="naive")
    told = json.loads(log.step(0))
    assert (told["rule"], told["choice"], told["positions"][0]["formula"]) == ("naive", None, "")


def test_evidence_makes_no_answer_larger():
    probed, bare = (filled_log(max_tokens=40, seed=3, probe=n)[0] for n in (8, 0))
    sizes = [[len(json.dumps(entry)) for entry in json.loads(log.since(0))["entries"]] for log in (probed, bare)]
    assert sum(sizes[0]) < 1.05 * sum(sizes[1])


def wire(value):
    return float(f"{value:.6g}") if isinstance(value, float) else value


def test_the_figures_after_every_step_are_those_of_the_events_up_to_it():
    log, events = filled_log(max_tokens=80, seed=3)
    answer = json.loads(log.figures_since(0))
    tally, expected = Tally(), []
    for event in events:
        tally.add(event)
        if isinstance(event, Started | Step):
            expected.append(tally.figures())
    names, positions = answer["names"]["figures"], answer["names"]["positions"]
    assert {*names, "per_position"} == {field.name for field in fields(Figures)}
    for row, figures in zip(answer["rows"], expected, strict=True):
        assert dict(zip(names, row[:-1], strict=True)) == {
            name: list(value) if isinstance(value, tuple) else wire(value)
            for name, value in ((name, getattr(figures, name)) for name in names)
        }
        assert row[-1] == [[wire(getattr(position, name)) for name in positions] for position in figures.per_position]


@pytest.mark.parametrize("seed", range(4))
def test_the_figures_of_a_step_are_the_same_in_whichever_order_and_whenever_they_are_asked_for(seed, monkeypatch):
    whole, events = filled_log(max_tokens=80, seed=3)
    rows = json.loads(whole.figures_since(0))["rows"]
    monkeypatch.setattr(event_log, "MOST_ENTRIES", 3)
    rng, log = random.Random(seed), EventLog()
    for number, event in enumerate(events, 1):
        log.add(event)
        known = sum(isinstance(one, Started | Step) for one in events[:number])
        cursor = rng.randrange(known + 2)
        if rng.random() < 0.3 or event is events[-1]:
            answer = json.loads(log.figures_since(cursor))
            assert answer["rows"] == rows[:known][cursor : cursor + 3]
            assert answer["more"] == (cursor + 3 < known)
    for cursor in rng.sample(range(len(rows)), len(rows)):
        assert json.loads(log.figures_since(cursor))["rows"] == rows[cursor : cursor + 3]


def test_figures_are_counted_when_they_are_asked_for_and_each_row_once(monkeypatch):
    asked = []
    counted = Tally.figures
    monkeypatch.setattr(Tally, "figures", lambda tally: asked.append(tally) or counted(tally))
    log, events = filled_log(max_tokens=40, seed=3)
    assert asked == []
    log.since(0)
    assert len(asked) == 1
    for _ in range(2):
        log.figures_since(0)
    assert len(asked) == 1 + sum(isinstance(event, Started | Step) for event in events)


def test_the_figures_of_steps_are_read_in_bounded_answers():
    log, _ = filled_log(drafter="none", max_tokens=MOST_ENTRIES + 5)
    first = json.loads(log.figures_since(0))
    assert len(first["rows"]) == MOST_ENTRIES
    assert first["more"]
    rest = json.loads(log.figures_since(MOST_ENTRIES))
    assert len(first["rows"]) + len(rest["rows"]) == MOST_ENTRIES + 5 + 1
    assert not rest["more"]


def test_an_update_of_a_live_run_stays_small():
    """A tenth of a second at 100 tokens a second: 10 plain steps, a guess and its fate each."""
    log, _ = filled_log(drafter="none", max_tokens=500)
    assert len(log.since(len(log) - 20)) < 5000
