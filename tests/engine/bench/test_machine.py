"""What is told of the machine, and how many threads a target has."""

from engine.bench import machine as machine_module
from engine.bench.machine import machine, package_versions, threads_used


def test_what_is_installed_is_named_and_the_rest_left_out():
    assert set(package_versions(["numpy", "no-such-package"])) == {"numpy"}
    assert "pytest" in machine(["pytest"])["versions"]


def test_threads_are_those_of_the_backend_that_runs(monkeypatch):
    monkeypatch.setattr(machine_module.threads, "n_threads", lambda: 1)
    monkeypatch.setattr(machine_module.threads, "n_session_threads", lambda backend: {"ort": 8, "numba": 4}[backend])
    assert [threads_used(name) for name in ("", "numpy", "ort", "numba")] == [1, 1, 8, 4]
    monkeypatch.setattr(machine_module.threads, "n_threads", lambda: None)
    assert machine(backend="numpy")["threads"] is None
