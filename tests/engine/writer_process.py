"""A process that writes runs: `python -m tests.engine.writer_process STORE MODE RUN_ID [COUNT]`.

MODE "whole" writes one run of COUNT steps. "prefixes" leaves a run open behind every event of the
sample run (RUN_ID0, RUN_ID1, ...), says "ready", and waits to be killed. "forever" writes steps until then.
"""

import sys
import time
from itertools import count
from pathlib import Path

from engine.spec import RunSpec
from engine.store import RunStore
from tests.engine.sample_events import sample_events, sample_step


def main(path: str, mode: str, run_id: str, n_steps: str = "0") -> None:
    """Write."""
    store = RunStore(Path(path))
    spec = RunSpec(prompt="a prompt")
    if mode == "whole":
        with store.begin(spec, run_id=run_id) as writer:
            for event in sample_events(int(n_steps)):
                writer.add(event)
    elif mode == "prefixes":
        events = list(sample_events())
        writers = [store.begin(spec, run_id=f"{run_id}{length}") for length in range(len(events))]
        for length, writer in enumerate(writers):
            for event in events[:length]:
                writer.add(event)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        time.sleep(60)
    else:
        writer = store.begin(spec, run_id=run_id)
        writer.add(next(sample_events()))
        for index in count():
            writer.add(sample_step(index, index + 3, float(index)))
            sys.stdout.write(f"{index}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
