"""Tokens are not glyphs: text is whole, bytes are shown as bytes, U+FFFD never marks a token."""

import itertools

import pytest

from engine.text import Piece, TextStream, find_stop
from tests.engine.toys import Pieces

BYTES = Pieces([bytes([byte]) for byte in range(256)])


def stream_of(*pieces, control=()):
    tokenizer = Pieces(pieces, control)
    return TextStream(tokenizer), range(len(pieces))


@pytest.mark.parametrize("text", ["plain", "é", "日本語", "👍🏽 ok", "a👨‍👩‍👧z", "naïve 🚀🚀"])
def test_any_split_of_the_bytes_gives_the_text_back(text):
    raw = text.encode()
    for cuts in itertools.combinations(range(1, len(raw)), min(2, len(raw) - 1)):
        edges = [0, *cuts, len(raw)]
        stream, ids = stream_of(*(raw[low:high] for low, high in itertools.pairwise(edges)))
        pieces = [stream.push(token) for token in ids]
        assert stream.text == stream.finish() == text
        assert "".join(piece.text for piece in pieces) == text
        assert not any("\ufffd" in piece.shown for piece in pieces)


def test_emoji_over_four_tokens_is_shown_whole_at_the_last_one():
    """ferrox#124, vllm-mlx#195, cactus#290: split characters shown as garbage."""
    stream = TextStream(BYTES)
    pieces = [stream.push(byte) for byte in "🚀!".encode()]
    assert [piece.shown for piece in pieces] == ["<F0>", "<9F>", "<9A>", "🚀", "!"]
    assert [piece.text for piece in pieces] == ["", "", "", "🚀", "!"]
    assert [piece.parts for piece in pieces] == [1, 1, 1, 4, 1]


def test_token_that_ends_one_character_and_begins_the_next():
    one, two = "日".encode(), "本".encode()
    stream, ids = stream_of(b"x" + one[:1], one[1:] + two[:2], two[2:])
    assert [stream.push(token) for token in ids] == [
        Piece("x<E6>", "x"),
        Piece("日<E6 9C>", "日", 2),
        Piece("本", "本", 2),
    ]


@pytest.mark.parametrize(
    ("pieces", "shown", "text"),
    [
        ([b"\xff"], ["<FF>"], "\ufffd"),
        ([b"\xc3", b"abc"], ["<C3>", "abc"], "\ufffdabc"),
        ([b"\xc3", b"\xf0"], ["<C3>", "<F0>"], "\ufffd\ufffd"),
        ([b"a\xff\xf0", b"\x9f\x9a\x80"], ["<61 FF F0>", "🚀"], "a\ufffd🚀"),
        (["\ufffd".encode()], ["<EF BF BD>"], "\ufffd"),
        ([b"", b"a"], ["", "a"], "a"),
        ([b"\xc3", b"", b"\xa9"], ["<C3>", "", "é"], "é"),
    ],
    ids=[
        "invalid",
        "broken off",
        "broken off by another",
        "invalid and begun",
        "U+FFFD itself",
        "empty",
        "empty inside",
    ],
)
def test_bytes_that_are_no_character_are_shown_as_bytes(pieces, shown, text):
    stream, ids = stream_of(*pieces)
    assert [stream.push(token).shown for token in ids] == shown
    assert stream.finish() == text


def test_a_character_that_never_completes_does_not_join_the_token_behind_it():
    stream, ids = stream_of(b"\xf0\x9f", b" hello")
    assert [stream.push(token).parts for token in ids] == [1, 1]


def test_control_tokens_are_shown_by_name_and_are_no_part_of_the_text():
    stream, _ = stream_of("a", "<end>", b"\xc3", control=[1])
    assert stream.push(0) == Piece("a", "a")
    assert stream.push(1) == Piece("<end>", "")
    assert stream.text == "a"


def test_half_a_character_before_a_control_token_is_flushed():
    stream, ids = stream_of(b"\xc3", "<end>", "b", control=[1])
    assert [stream.push(token).shown for token in ids] == ["<C3>", "<end>", "b"]
    assert stream.text == stream.finish() == "\ufffdb"


def test_half_a_character_at_the_end_is_left_out_until_the_flush():
    stream = TextStream(BYTES)
    for byte in b"ok\xf0\x9f":
        stream.push(byte)
    assert (stream.text, stream.finish()) == ("ok", "ok\ufffd")
    assert stream.finish() == "ok\ufffd"  # a flush changes nothing


def test_peek_shows_without_appending():
    stream = TextStream(BYTES)
    stream.push(0xC3)
    assert stream.peek(b"\xa9x\xf0") == ("é", "x", "<F0>")
    assert stream.peek(b"\xa9") == ("é",)
    assert stream.text == ""
    assert stream.push(0xA9).shown == "é"


def test_without_a_tokenizer_every_text_is_empty():
    stream = TextStream(None)
    assert stream.push(5) == Piece("", "")
    assert (stream.peek([1, 2]), stream.finish()) == (("", ""), "")


@pytest.mark.parametrize(
    ("text", "stop", "place"),
    [("abcabc", ["c"], 2), ("abc", ["c", "b"], 1), ("abc", ["x"], None), ("", [], None)],
)
def test_find_stop_gives_the_earliest_place(text, stop, place):
    assert find_stop(text, stop) == place
