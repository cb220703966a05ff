"""Whether a row really is the same alone and in a block, on this processor: tried once, and noted.

That it is follows from how the arithmetic of ONNX Runtime is written for the processors that were
tried, not from a promise of its makers.  So it is tried on each processor before it is claimed.
"""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path

import numpy as np

from engine.models.onnx_backend import OnnxTransformer

__all__ = ["processor", "rows_are_exact"]

NOTES = "rows.json"
N_BEFORE = 20  # tokens in front of those that are compared
BLOCKS = (33, 32, 8, 5, 3, 2)  # blocks of so many rows, each compared with the same rows alone


def rows_are_exact(model: OnnxTransformer, folder: Path, n_threads: int | None) -> bool:
    """Compare rows alone with rows in blocks, or read how that ended on this processor before.

    Parameters
    ----------
    model : OnnxTransformer
        Left as it was: a fork is tried.
    folder : Path
        Where the graph is, and the note beside it.
    n_threads : int or None
        With which the model runs.
    """
    key = f"{processor()}, {n_threads or 'all'} threads"
    notes = _notes(folder)
    if key not in notes:
        notes[key] = _compare(model.fork(exact_rows=True))
        _write(folder, notes)
    return notes[key]


def processor() -> str:
    """What the arithmetic depends on: the processor's name and, where it is told, what it can do."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = file.read().split("\n\n", 1)[0].splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    told = dict(line.split(":", 1) for line in lines if ":" in line)
    told = {name.strip().lower(): value.strip() for name, value in told.items()}
    abilities = set(told.get("flags", told.get("features", "")).split())
    wide = sorted(abilities & {"avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "asimddp", "i8mm", "sve"})
    return " ".join([platform.machine(), told.get("model name", platform.processor()), *wide])


def _compare(model: OnnxTransformer) -> bool:
    room = model.context_length - N_BEFORE
    if room < 2:
        return True
    n_rows = min(BLOCKS[0], room)
    ids = np.random.default_rng(0).integers(0, model.vocab_size, N_BEFORE + n_rows).tolist()
    alone = np.concatenate([model.logits(ids[: N_BEFORE + 1 + place]) for place in range(n_rows)])
    for n_together in BLOCKS:
        n_together = min(n_together, n_rows)
        together = model.logits(ids[: N_BEFORE + n_together], last=n_together)
        if not np.array_equal(together, alone[:n_together]):
            return False
    return True


def _notes(folder: Path) -> dict[str, bool]:
    try:
        notes = json.loads((folder / NOTES).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(key): value for key, value in notes.items() if type(value) is bool} if isinstance(notes, dict) else {}


def _write(folder: Path, notes: dict[str, bool]) -> None:
    """Keep the notes if it can be done; otherwise the rows are compared again next time."""
    part = folder / f"{NOTES}.{os.getpid()}"
    try:
        part.write_text(json.dumps(notes, indent=1), encoding="utf-8")
        os.replace(part, folder / NOTES)
    except OSError:
        part.unlink(missing_ok=True)
