"""How many threads numpy's matrix products may use."""

import numpy as np
import pytest
import threadpoolctl

from engine.errors import SettingError
from engine.models import threads
from engine.models.threads import (
    BLAS_VARIABLES,
    THREADS_VARIABLE,
    limit_threads,
    n_cores,
    n_session_threads,
    n_threads,
)


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in (THREADS_VARIABLE, *BLAS_VARIABLES):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("cores", "expected"), [(1, 1), (2, 1), (3, 1), (4, 2), (16, 8)])
def test_half_of_the_cores_are_used(monkeypatch, cores, expected):
    monkeypatch.setattr(threads, "n_cores", lambda: cores)
    assert n_threads() == expected


def test_a_compiled_model_uses_all_cores_and_numba_a_few(monkeypatch):
    for cores, of_numba in ((1, 1), (2, 2), (16, 8)):
        monkeypatch.setattr(threads, "n_cores", lambda cores=cores: cores)
        assert (n_session_threads("ort"), n_session_threads("numba")) == (cores, of_numba)
    monkeypatch.setenv(THREADS_VARIABLE, "12")
    assert n_session_threads("numba") == 12


def test_cores_are_those_that_this_process_may_run_on(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {3, 5}, raising=False)
    assert n_cores() == 2
    monkeypatch.delattr("os.sched_getaffinity")
    assert n_cores() == 64
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert n_cores() == 1


def test_the_users_number_wins(monkeypatch):
    monkeypatch.setenv(THREADS_VARIABLE, "3")
    assert n_threads() == 3


def test_an_empty_number_counts_as_none(monkeypatch):
    monkeypatch.setenv(THREADS_VARIABLE, "")
    monkeypatch.setattr(threads, "n_cores", lambda: 6)
    assert (n_threads(), n_session_threads("ort"), n_session_threads("numba")) == (3, 6, 6)


def test_a_number_set_for_the_library_itself_is_left_alone(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    assert n_threads() is None


@pytest.mark.parametrize("wanted", ["0", "-1", "two", " "])
def test_what_is_no_number_is_refused(monkeypatch, wanted):
    monkeypatch.setenv(THREADS_VARIABLE, wanted)
    with pytest.raises(SettingError, match="whole number"):
        n_threads()


def test_the_limit_reaches_the_library(monkeypatch):
    np.ones((4, 4)) @ np.ones((4, 4))
    with threadpoolctl.threadpool_limits(limits=2, user_api="blas"):
        monkeypatch.setenv(THREADS_VARIABLE, "1")
        limit_threads()
        assert {pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"} == {1}
