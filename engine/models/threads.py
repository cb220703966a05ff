"""How many threads numpy's matrix products may use.

Two threads of a matrix product wait for each other, many times a token. Where another program
wants a core too (a browser that draws the page, say), each wait costs a time slice: on a busy
machine of two cores, one thread was measured four to ten times as fast as two. So half of the
cores are used, unless the user says otherwise.
"""

from __future__ import annotations

import os

from engine.errors import SettingError

__all__ = ["THREADS_VARIABLE", "limit_threads", "n_session_threads", "n_threads"]

THREADS_VARIABLE = "DRAFTSCOPE_THREADS"
BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def n_threads() -> int | None:
    """The number of threads to use; None if the user has set one for the BLAS library itself.

    Raises
    ------
    SettingError
        If the variable DRAFTSCOPE_THREADS is not a whole number from 1 up.
    """
    wanted = os.environ.get(THREADS_VARIABLE)
    if wanted is not None:
        if not wanted.isdecimal() or int(wanted) < 1:
            raise SettingError(f"{THREADS_VARIABLE} is {wanted!r}; it must be a whole number from 1 up")
        return int(wanted)
    if any(name in os.environ for name in BLAS_VARIABLES):
        return None
    return max(1, (os.cpu_count() or 1) // 2)


def limit_threads() -> None:
    """Hold numpy's matrix products to `n_threads` threads, in the whole process and from now on."""
    wanted = n_threads()
    if wanted is not None:
        import threadpoolctl

        threadpoolctl.threadpool_limits(limits=wanted, user_api="blas")


def n_session_threads() -> int:
    """The number of threads for a compiled graph: the user's, or as many as there are cores.

    Raises
    ------
    SettingError
        As `n_threads` does.
    """
    if os.environ.get(THREADS_VARIABLE) is not None:
        return n_threads() or 1
    return os.cpu_count() or 1
