"""The lock by which a writer shows that it lives."""

import sqlite3

import pytest

from engine.life_sign import LifeSign


@pytest.fixture
def sign(tmp_path):
    return LifeSign(tmp_path / "runs.sqlite", "a1")


def test_nobody_lives_before_the_first_sign(sign):
    assert not sign.held()
    sign.release()


def test_a_sign_is_seen_by_all_and_given_to_one(sign, tmp_path):
    other = LifeSign(tmp_path / "runs.sqlite", "a1")
    sign.take()
    assert sign.held()
    assert other.held()
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        other.take()
    assert not LifeSign(tmp_path / "runs.sqlite", "a2").held()
    sign.release()
    assert not other.held()


def test_a_file_that_a_dead_writer_left_is_no_sign_of_life(sign, tmp_path):
    (tmp_path / "runs.sqlite-live").mkdir()
    (tmp_path / "runs.sqlite-live" / "a1").touch()
    assert not sign.held()


def test_a_released_sign_leaves_nothing_behind(sign, tmp_path):
    sign.take()
    sign.release()
    sign.release()
    assert list((tmp_path / "runs.sqlite-live").iterdir()) == []


def test_readers_do_not_take_each_other_for_a_writer(sign, tmp_path):
    sign.take()
    sign.release()
    (tmp_path / "runs.sqlite-live" / "a1").touch()
    connection = sqlite3.connect(tmp_path / "runs.sqlite-live" / "a1", isolation_level=None)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    assert not sign.held()
    connection.close()
