"""Runs for the tests of the store: settings with an odd prompt, the events of a run, and how they are kept."""

from collections.abc import Iterable
from typing import Any

from engine.spec import RunSpec
from engine.store import RunStore
from engine.values import Event
from tests.engine.sample_events import sample_events

SPEC = RunSpec(prompt="a prompt \U0001f600\ud83d\0", stop=("\n", "end"), temperature=0.1 + 0.2)
EVENTS = list(sample_events())


def write(store: RunStore, events: Iterable[Event], spec: RunSpec = SPEC, **begin: Any) -> str:
    """Keep a run and return its id."""
    with store.begin(spec, **begin) as writer:
        for event in events:
            writer.add(event)
    return writer.run_id
