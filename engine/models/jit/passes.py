"""A pass of a program, run by the thread that asks for it and the team that helps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.models.jit.memory import Memory
from engine.models.jit.program import assist, end, run
from engine.models.jit.stages import address
from engine.models.jit.team import Team
from engine.models.jit.work import numbers_of

__all__ = ["pass_numbers", "run_numbers", "run_pass"]

NOTHING = {"tokens": 0, "inputs": 0, "n_inputs": 0, "taps": 0, "streams": 0, "best_tokens": 0, "best_logits": 0}


def run_pass(team: Team, stages: NDArray[np.int64], memory: Memory, **given: Any) -> None:
    """Run the stages of a table on what is in memory and what else a `Work` has."""
    run_numbers(team, stages, pass_numbers(stages, memory, **given))


def pass_numbers(stages: NDArray[np.int64], memory: Memory, **given: Any) -> NDArray[np.int64]:
    """The numbers of such a pass; every pass needs some of its own, that a helper who is late meets no other."""
    return numbers_of(**memory.addresses, **NOTHING | given, stages=address(stages), over=len(stages) - 1)


def run_numbers(team: Team, stages: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
    """Run a pass that `pass_numbers` has described."""
    try:
        team.call(assist, (numbers, stages))
        run(numbers)
    except BaseException:  # no helper waits for a pass that was interrupted before it began
        end(numbers, stages)
        raise
