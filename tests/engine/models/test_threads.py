"""How many threads numpy's matrix products may use."""

import numpy as np
import pytest
import threadpoolctl

from engine.errors import SettingError
from engine.models.threads import BLAS_VARIABLES, THREADS_VARIABLE, limit_threads, n_threads


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in (THREADS_VARIABLE, *BLAS_VARIABLES):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("n_cores", "expected"), [(1, 1), (2, 1), (3, 1), (4, 2), (16, 8), (None, 1)])
def test_half_of_the_cores_are_used(monkeypatch, n_cores, expected):
    monkeypatch.setattr("os.cpu_count", lambda: n_cores)
    assert n_threads() == expected


def test_the_users_number_wins(monkeypatch):
    monkeypatch.setenv(THREADS_VARIABLE, "3")
    assert n_threads() == 3


def test_a_number_set_for_the_library_itself_is_left_alone(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    assert n_threads() is None


@pytest.mark.parametrize("wanted", ["0", "-1", "two", ""])
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
