"""Tokens are committed one by one; the earliest cause ends the run."""

import pytest

from engine.output import Output
from tests.engine.toys import Pieces, letters


def output_of(pieces=None, *, end=(), stop=(), max_tokens=99, context_room=99, control=()):
    tokenizer = Pieces(pieces, control) if pieces else Pieces()
    return Output(tokenizer, end_tokens=frozenset(end), stop=stop, max_tokens=max_tokens, context_room=context_room)


def commit_all(output, ids):
    """Commit until something ends the run; how many tokens that took."""
    for n_committed, token in enumerate(ids, 1):
        output.commit(token)
        if output.reason:
            return n_committed
    return None


@pytest.mark.parametrize(
    ("pieces", "stop", "n_tokens", "text"),
    [
        (["one two", " three"], ["two"], 1, "one "),
        (["one t", "w", "o three"], ["two"], 3, "one "),
        (["a", "b", "a", "b", "c"], ["abc"], 5, "ab"),
        (["aa", "a", "b"], ["aab"], 3, "a"),
        (["x\n", "\ny"], ["\n\n"], 2, "x"),
        (["end", "less"], ["d", "endl"], 1, "en"),
        (["a", "bcd"], ["d", "bc"], 2, "a"),
        (["stop"], ["stop"], 1, ""),
        ([b"\xe6\x97", b"\xa5!"], ["日"], 2, ""),
        (["a" * 50, "b" * 50, "c"], ["bc"], 3, "a" * 50 + "b" * 49),
        (["<", "e", "n", "d", ">"], ["!", "<end>", "?"], 5, ""),
        (["abc", "def"], ["xyz", "cd" * 9], None, "abcdef"),
        (["abc", "def"], ["fg"], None, "abcdef"),
    ],
    ids=[
        "inside a token", "over three tokens", "false start", "overlaps itself", "newlines", "the one complete first",
        "two in one token", "nothing before it", "completed by half a character", "far behind", "one letter each",
        "never", "begun only",
    ],
)  # fmt: skip
def test_stop_string_ends_the_run_and_is_no_part_of_the_text(pieces, stop, n_tokens, text):
    """A window that is too short misses a stop over several tokens: sglang#23802, #27637."""
    output = output_of(pieces, stop=stop)
    assert commit_all(output, range(len(pieces))) == n_tokens
    assert output.reason == ("stop_string" if n_tokens else None)
    assert output.text == text
    assert output.ids == list(range(n_tokens or len(pieces)))


def test_end_token_ends_the_run():
    output = output_of(["a", "</s>", "b"], end=[1], control=[1])
    assert commit_all(output, [0, 1, 2]) == 2
    assert (output.reason, output.text, output.ids) == ("end_token", "a", [0, 1])


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"end": letters("b"), "stop": ["b"], "max_tokens": 2}, "end_token"),
        ({"stop": ["b"], "max_tokens": 2}, "stop_string"),
        ({"max_tokens": 2, "context_room": 2}, "length"),
        ({"max_tokens": 3, "context_room": 2}, "context"),
        ({"end": letters("c"), "stop": ["b"]}, "stop_string"),
        ({"end": letters("b"), "stop": ["bc"]}, "end_token"),
    ],
    ids=str,
)
def test_cause_that_goes_first(settings, reason):
    """A stop on the very token of the limit is a stop: sglang#31599, #31569."""
    output = output_of(**settings)
    assert commit_all(output, letters("abc")) == 2
    assert output.reason == reason


@pytest.mark.parametrize(("max_tokens", "context_room"), [(3, 99), (99, 3)])
def test_room_counts_down_to_the_nearer_limit(max_tokens, context_room):
    output = output_of(max_tokens=max_tokens, context_room=context_room)
    rooms = [output.room]
    for token in letters("abc"):
        output.commit(token)
        rooms.append(output.room)
    assert rooms == [3, 2, 1, 0]


def test_half_a_character_at_the_end_is_flushed_once():
    output = output_of(["a", b"\xf0\x9f"])
    commit_all(output, [0, 1])
    assert output.text == "a\ufffd"


def test_stop_in_a_text_with_half_a_character_behind_it():
    output = output_of([b"ab\xf0", b"\x9f"], stop=["b"])
    assert commit_all(output, [0, 1]) == 1
    assert output.text == "a"


def test_peek_commits_nothing():
    output = output_of(stop=["b"], max_tokens=2)
    assert output.peek(letters("abab")) == ("a", "b", "a", "b")
    assert (output.ids, output.reason, output.text) == ([], None, "")


def test_without_a_tokenizer_ids_and_limits_still_count():
    output = Output(None, end_tokens=frozenset({4}), stop=(), max_tokens=9, context_room=9)
    assert commit_all(output, [1, 2, 4]) == 3
    assert (output.reason, output.text, output.ids) == ("end_token", "", [1, 2, 4])
