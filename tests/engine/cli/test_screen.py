"""What is written of a text: in colour, growing, or whole; and nothing that steers a terminal."""

import io

import pytest

from engine.cli.joined import joined_text
from engine.cli.paint import STYLES, legend, painted, safe
from engine.cli.screen import Coloured, Growing, screen_for
from engine.values import Decision, Step


class Bytes:
    """Ids are bytes; 0 is a control token."""

    def token_bytes(self, token):
        return bytes([token]) if token else b"<|end|>"

    def is_control(self, token):
        return token == 0


class Terminal(io.StringIO):
    def isatty(self):
        return True


def step_of(tokens):
    return Step(0, 1, (), tuple(tokens), 0.0, 0.0, 0.0, 0.0)


def grown(blocks, text, stop=()):
    """What has been written after each step, and after the end."""
    screen, written = Growing(Bytes(), stop, exact=False), [""]
    for block in blocks:
        written.append(written[-1] + screen.step(step_of(block)))
    return written[1:], written[-1] + screen.end(text)


@pytest.fixture(autouse=True)
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_the_screen_suits_the_stream(monkeypatch):
    assert isinstance(screen_for(Terminal(), Bytes(), ()), Coloured)
    assert isinstance(screen_for(io.StringIO(), Bytes(), ()), Growing)
    monkeypatch.setenv("NO_COLOR", "")
    assert isinstance(screen_for(Terminal(), Bytes(), ()), Coloured)
    monkeypatch.setenv("NO_COLOR", "1")
    assert isinstance(screen_for(Terminal(), Bytes(), ()), Growing)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(screen_for(Terminal(), Bytes(), ()), Growing)


def test_a_character_over_more_tokens_is_written_when_it_is_whole():
    smile = "😀".encode()
    written, end = grown([b"a", smile[:2], smile[2:] + b"b"], "a😀b")
    assert written == ["a", "a", "a😀b"]
    assert end == "a😀b\n"


def test_half_a_character_at_the_end_is_written_at_the_end():
    assert grown([b"a", b"\xf0"], "a\ufffd") == (["a", "a"], "a\ufffd\n")


def test_control_tokens_are_no_part_of_the_text():
    assert grown([b"a\0b", b"\0"], "ab") == (["ab", "ab"], "ab\n")


def test_text_behind_a_stop_string_is_never_written():
    written, end = grown([b"one E", b"N", b"D two"], "one ", stop=("END", "zzzz"))
    assert written == ["on", "one", "one "]
    assert end == "one \n"


def test_what_only_began_like_a_stop_string_is_written_later():
    assert grown([b"EN", b"ding"], "ENding", stop=("END",)) == (["", "ENdi"], "ENding\n")


def test_a_file_or_another_program_gets_every_character_as_it_is():
    screen = screen_for(io.StringIO(), Bytes(), ())
    assert screen.step(step_of(b"a\r\x1b[31m")) == "a\r\x1b[31m"
    assert screen.end("a\r\x1b[31m") == "\n"


def test_every_outcome_has_a_style_of_its_own():
    decisions = (
        Decision(0, "accepted", 1, 1, True, draft_text=" kept", target_text=" kept"),
        Decision(1, "rejected", 2, 3, draft_text=" guess\n", target_text=" other\n"),
        Decision(2, "unreached", 4, draft_text=" never"),
    )
    assert painted(decisions) == (
        "\x1b[4;36m kept\x1b[0m\x1b[9;31m guess⏎\x1b[0m\x1b[2m never\x1b[0m\x1b[1;33m other\x1b[0m\n"
    )
    assert painted([Decision(0, "bonus", None, 5, target_text=" more")]) == "\x1b[1;35m more\x1b[0m"
    assert painted([Decision(0, "plain", None, 6, discarded=True, target_text=" cut")]) == "\x1b[2;9m cut\x1b[0m"
    assert all(f"\x1b[{style}m{outcome}\x1b[0m" in legend() for outcome, style in STYLES.items())


@pytest.mark.parametrize("code", [*range(0x20), *range(0x7F, 0xA0), 0xD800])
def test_control_characters_do_not_reach_the_terminal(code):
    expected = chr(code) if chr(code) in "\n\t" else "\ufffd"
    assert safe(f"a{chr(code)}b") == f"a{expected}b"
    assert f"a{expected}b" in painted([Decision(0, "plain", None, 1, target_text=f"a{chr(code)}b")])


def test_other_characters_reach_it():
    text = "é 汉字 👩\u200d👩\u200d👧 \u00a0\u3000 naïve"
    assert safe(text) == text


def test_joining_takes_bytes_only_from_the_tokens_of_the_character():
    pieces = [("<3C> <C3>", 1), ("<A9>", 1), ("x", 1), ("<F0 9F>", 1), ("😀", 2), ("y", 9)]
    decisions = [
        Decision(place, "accepted", 1, 1, True, target_text=text, target_parts=parts)
        for place, (text, parts) in enumerate(pieces[:-1])
    ]
    assert joined_text(decisions) == "<3C> <C3><A9>x😀"
    assert joined_text([Decision(0, "plain", None, 1, target_text="y", target_parts=9)]) == "y"


def test_joining_leaves_out_what_was_not_emitted():
    decisions = [
        Decision(0, "rejected", 1, 2, draft_text="a", target_text="b"),
        Decision(1, "unreached", 3, draft_text="c"),
        Decision(2, "bonus", None, 4, discarded=True, target_text="d"),
    ]
    assert joined_text(decisions) == "b"
