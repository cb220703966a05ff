"""A run as one flat record of plain data."""

import dataclasses
import json

from engine.decode import decode
from engine.drafters import ModelDrafter
from engine.metrics import Figures, measure
from engine.report import Report
from engine.sampling import Sampling
from engine.values import Step
from tests.engine.toys import Pieces, TickingClock, random_model


def events_of(**settings):
    return decode(
        random_model(1, 26), ModelDrafter(random_model(2, 26), 26), [0, 3], sampling=Sampling(temperature=1),
        tokenizer=Pieces(), clock=TickingClock(), **settings,
    )  # fmt: skip


def test_record_names_the_run_its_text_and_every_figure():
    events = list(events_of(max_tokens=20, seed=5))
    record = Report(events).record()
    named = {
        "target": "random-1", "drafter": "model:random-2", "rule": "exact", "lossless": True, "seed": 5,
        "backend": "", "exact_rows": False, "prompt_tokens": 2, "text": events[-1].text, "ids": list(events[-1].ids),
        "logprobs": None,
    }  # fmt: skip
    assert record == named | dataclasses.asdict(measure(events))
    assert len(record["text"]) == len(record["ids"]) == 20


def test_record_is_flat_plain_data():
    record = Report(events_of(max_tokens=20)).record()
    again = json.loads(json.dumps(record, allow_nan=False))
    assert list(again) == list(record)
    assert again["per_position"][0]["position"] == 1
    assert set(record) >= {field.name for field in dataclasses.fields(Figures)}


def test_record_of_a_run_that_goes_on_has_figures_and_no_text():
    report = Report()
    assert report.record()["target"] is None
    for event in events_of(max_tokens=20):
        report.add(event)
        if isinstance(event, Step):
            break
    record = report.record()
    assert (record["target"], record["steps"], record["finish_reason"]) == ("random-1", 1, None)
    assert record["text"] is None
    assert record["ids"] == list(event.emitted)
    report.add(event)
    assert len(record["ids"]) == len(event.emitted)  # a record does not change any more
    assert report.figures().steps == 2


def test_record_of_a_cancelled_run_keeps_what_was_emitted():
    asked = []
    record = Report(events_of(cancelled=lambda: asked.append(1) or len(asked) > 2)).record()
    assert (record["finish_reason"], record["steps"]) == ("cancelled", 2)
    assert len(record["ids"]) == record["tokens_generated"] > 0
