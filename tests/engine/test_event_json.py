"""Events as JSON objects, there and back."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from engine.build import build
from engine.errors import StoreError
from engine.event_json import event_from_json, event_from_object, event_to_json, event_to_object
from engine.spec import RunSpec
from engine.values import Decision, Drafted, Finished, Started, Step
from tests.engine.sample_events import TEXTS, sample_events, sample_step


@pytest.mark.parametrize(
    "event", [*sample_events(6), *sample_events(1, simulated=True)], ids=lambda e: type(e).__name__
)
def test_every_event_comes_back_equal(event):
    assert event_from_json(event_to_json(event)) == event


def test_events_of_a_real_run_come_back_equal():
    events = list(build(RunSpec(prompt="The draft", max_tokens=40, seed=3)).events())
    assert [event_from_json(event_to_json(event)) for event in events] == events


@pytest.mark.parametrize("number", [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, -0.0, 2**-53, 123456789.123456789])
def test_floats_come_back_bit_for_bit(number):
    event = Finished("length", (), "", number, number)
    back = event_from_json(event_to_json(event))
    assert back.total_seconds.hex() == number.hex()


@pytest.mark.parametrize("text", [*TEXTS, "\ud83d", "\u2028", "\x7f\x1b[31m"])
def test_texts_come_back_from_ascii(text):
    event = Drafted(0, 1, (4,), (text,), 0.0)
    written = event_to_json(event)
    assert written.isascii()
    assert "\n" not in written
    assert event_from_json(written) == event


def test_fields_at_their_default_are_left_out():
    decision = Decision(0, "accepted", 0, 0, True, draw=0.0)
    step = Step(0, 1, (decision,), (0,), 0.0, 0.0, 0.0, 0.0)
    [written] = event_to_object(step)["decisions"]
    assert written == {
        "position": 0, "outcome": "accepted", "draft_token": 0, "target_token": 0, "accepted": True, "draw": 0.0
    }  # fmt: skip
    assert "note" not in event_to_object(step)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_in_json_is_refused(number):
    step = replace(sample_step(0, 3, 0.0), at_seconds=number)
    with pytest.raises(StoreError, match="cannot be written as JSON"):
        event_to_json(step)


def test_numbers_of_numpy_become_plain_ones():
    decision = Decision(0, "plain", target_token=np.int64(3), accepted=np.bool_(False), emitted_prob=np.float64(0.1))
    step = Step(0, 1, (decision,), (np.int64(3),), np.float64(0.5), 0.0, 0.0, 0.75)
    [back] = event_from_json(event_to_json(step)).decisions
    assert back == Decision(0, "plain", target_token=3, emitted_prob=0.1)
    assert type(back.target_token) is int


def test_what_is_no_event_is_not_written():
    with pytest.raises(TypeError, match="started, drafted, step, finished"):
        event_to_object("a step")


START = event_to_object(Started("target", "none", "exact", True, 0, (1,)))
STEP = event_to_object(sample_step(0, 3, 0.0))
CHOICE = {
    "position": 0, "drawn_from": "target", "drawn_prob": 1.0, "drawn_below": 0.0, "draw": 0.5, "target_entropy": 0.0,
    "draft_entropy": None, "total_variation": None, "alternatives": [], "target_others": 0.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "this is a list"),
        ({**START, "type": "paused"}, "'paused' is unknown.*newer version"),
        ({**START, "type": ["step"]}, "is unknown"),
        ({"target": "a"}, "type None is unknown"),
        ({**START, "temperature": 1}, "no field 'temperature'.*newer version"),
        ({"type": "started"}, "lacks its field 'target'"),
        ({**START, "seed": "0"}, "'seed' of a Started is '0'"),
        ({**START, "seed": True}, "'seed'"),
        ({**START, "prompt": [1, "2"]}, "'prompt'"),
        ({**STEP, "decisions": [{**STEP["decisions"][0], "outcome": "kept"}]}, "'outcome' of a Decision is 'kept'"),
        ({**STEP, "decisions": [{**STEP["decisions"][0], "entropy": 1.0}]}, "Decision has no field 'entropy'"),
        ({**STEP, "decisions": [3]}, "a Decision must be a JSON object"),
        ({**STEP, "decisions": 3}, "'decisions' of a Step"),
        ({**STEP, "evidence": 3}, "'evidence' of a Step is 3"),
        ({**STEP, "evidence": {}}, "an Evidence lacks its field 'choice'"),
        ({**STEP, "evidence": {"choice": {"place": 1}}}, "a Choice has no field 'place'.*newer version"),
        ({**STEP, "evidence": {"choice": {}, "positions": [3]}}, "a Choice lacks its field"),
        ({**STEP, "evidence": {"choice": CHOICE, "positions": [3]}}, "a PositionEvidence must be a JSON object"),
        ({**STEP, "evidence": {"choice": {**CHOICE, "drawn_from": "draft"}}}, "'drawn_from' of a Choice is 'draft'"),
    ],
)
def test_what_cannot_be_read_is_told_in_words(data, words):
    with pytest.raises(StoreError, match=words):
        event_from_object(data)


@pytest.mark.parametrize("text", ["", "{", "nothing"])
def test_what_is_not_json_is_told_in_words(text):
    with pytest.raises(StoreError, match="not JSON"):
        event_from_json(text)


def test_a_whole_number_is_taken_for_a_float():
    event = event_from_object({**json.loads(event_to_json(Drafted(0, 1, (), (), 0.5))), "draft_seconds": 2})
    assert event.draft_seconds == 2
