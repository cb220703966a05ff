"""How text is cut into words before byte-pair merging: one rule per `tokenizer.ggml.pre`.

The names and what belongs to them are those of llama.cpp (`src/llama-vocab.cpp`); the expressions
are those of the original tokenizers, in the syntax of the `tokenizers` package.  No rule is
guessed: a file with another name is refused, since a wrong cut gives other tokens and quietly
worse answers.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import ModelFileError

__all__ = ["RULES", "SplitRule", "rule_named"]


@dataclass(frozen=True, slots=True)
class SplitRule:
    """How one family of tokenizers prepares text.

    Attributes
    ----------
    patterns : tuple of str
        Regular expressions applied in turn; what matches, and what lies between, stands alone.
    whole_words : bool
        A word that is a token is taken as it is, without merging.
    begins : bool
        Whether a text begins with the begin token where the file does not say.
    """

    patterns: tuple[str, ...]
    whole_words: bool = False
    begins: bool = False


_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
# After GPT-4: contractions in any case, one leading mark joins a word, line ends stay together.
_GPT4 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{digits}"
    r"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

_PLAIN = SplitRule((_GPT2,))
_SINGLE_DIGITS = SplitRule((r"\p{N}", _GPT2))
_LLAMA3 = SplitRule((_GPT4.format(digits="{1,3}"),), whole_words=True, begins=True)
_SMAUG = SplitRule((_GPT4.format(digits="{1,3}"),))
_QWEN = SplitRule((_GPT4.format(digits=""),))

RULES = {
    "codeshell": _SINGLE_DIGITS,
    "command-r": _SINGLE_DIGITS,
    "dbrx": _SMAUG,
    "deepseek-r1-qwen": _QWEN,
    "exaone": _SINGLE_DIGITS,
    "falcon3": _LLAMA3,
    "gpt-2": _PLAIN,
    "llama-bpe": _LLAMA3,
    "llama-v3": _LLAMA3,
    "llama3": _LLAMA3,
    "minerva-7b": _SINGLE_DIGITS,
    "mpt": _PLAIN,
    "olmo": _PLAIN,
    "pixtral": _LLAMA3,
    "qwen2": _QWEN,
    "refact": _SINGLE_DIGITS,
    "smaug-bpe": _SMAUG,
    "smollm": _SINGLE_DIGITS,
    "stablelm2": _QWEN,
    "starcoder": _SINGLE_DIGITS,
    "tekken": SplitRule((_TEKKEN,), whole_words=True, begins=True),
}


def rule_named(name: str) -> SplitRule:
    """The rule that `tokenizer.ggml.pre` names.

    Raises
    ------
    ModelFileError
        If there is none; "default" and an absent name are among those, since they say only that
        the file's maker did not know.

    Examples
    --------
    >>> rule_named("smollm").patterns[0]
    '\\\\p{N}'
    """
    if name not in RULES:
        raise ModelFileError(
            f"the tokenizer cuts text the {name!r} way, which Draftscope does not know; it knows {', '.join(RULES)}"
        )
    return RULES[name]
