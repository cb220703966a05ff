"""How many threads a model may use.

Two threads of a matrix product in numpy wait for each other, many times a token. Where another
program wants a core too (a browser that draws the page, say), each wait costs a time slice: on a
busy machine of two cores, one thread was measured four to ten times as fast as two. So numpy's
products use half of the cores, and compiled models, whose threads wait otherwise, all of them,
unless the user says otherwise.
"""

from __future__ import annotations

import os

from engine.errors import SettingError

__all__ = ["THREADS_VARIABLE", "limit_threads", "n_cores", "n_session_threads", "n_threads"]

THREADS_VARIABLE = "DRAFTSCOPE_THREADS"
MOST_OF_NUMBA = 8  # unless the user wants more
LIMIT_OF_NUMBA = 64
BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def n_threads() -> int | None:
    """The number of threads to use; None if the user has set one for the BLAS library itself.

    Raises
    ------
    SettingError
        If the variable DRAFTSCOPE_THREADS is set, not empty, and not a whole number from 1 up.
    """
    wanted = os.environ.get(THREADS_VARIABLE)
    if wanted:
        if not wanted.isdecimal() or int(wanted) < 1:
            raise SettingError(f"{THREADS_VARIABLE} is {wanted!r}; it must be a whole number from 1 up")
        return int(wanted)
    if any(name in os.environ for name in BLAS_VARIABLES):
        return None
    return max(1, n_cores() // 2)


def limit_threads() -> None:
    """Hold numpy's matrix products to `n_threads` threads, in the whole process and from now on."""
    wanted = n_threads()
    if wanted is not None:
        import threadpoolctl

        threadpoolctl.threadpool_limits(limits=wanted, user_api="blas")


def n_session_threads(backend: str) -> int:
    """The number of threads for a compiled model: the user's, or as many as there are cores.

    Parameters
    ----------
    backend : {"numba", "ort"}
        "numba" takes `MOST_OF_NUMBA` at most by itself: its parts of a token are small, and threads wait for each
        other between them.

    Raises
    ------
    SettingError
        As `n_threads` does.
    """
    if os.environ.get(THREADS_VARIABLE):
        return min(n_threads() or 1, LIMIT_OF_NUMBA) if backend == "numba" else n_threads() or 1
    return min(n_cores(), MOST_OF_NUMBA) if backend == "numba" else n_cores()


def n_cores() -> int:
    """The cores that this process may run on, where the system tells; else all."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
