"""The tokenizer in a GGUF file: byte-level BPE, run by the `tokenizers` package.

After Sennrich et al. (arXiv 1508.07909) over bytes, as in GPT-2.  Tokens, merges, token types and
chat template are the file's own; `splits` has the rule by which text is cut into words first.

Control tokens are not in the vocabulary that text is encoded with, so no text can become one.
Text is not normalised, as in llama.cpp: what goes in comes out, byte for byte.
Not here: SentencePiece and WordPiece vocabularies, and appending an end token to a prompt.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from engine.errors import ModelFileError, PromptError, SettingError
from engine.models.gguf import GGUFFile
from engine.models.splits import SplitRule, rule_named
from engine.models.template import render

if TYPE_CHECKING:
    from tokenizers import Tokenizer

__all__ = ["GGUFTokenizer"]

# tokenizer.ggml.token_type
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED = 1, 2, 3, 4, 5

# The GPT-2 alphabet: printable bytes stand for themselves, the other 68 for U+0100 and up.
_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHER = [byte for byte in range(256) if byte not in _PRINTABLE]
BYTE_OF = {chr(byte): byte for byte in _PRINTABLE} | {chr(256 + i): byte for i, byte in enumerate(_OTHER)}
# To Latin-1, where code and byte are the same number; what is outside the alphabet goes where Latin-1 has nothing.
_TO_LATIN = {ord(letter): byte for letter, byte in BYTE_OF.items()} | dict.fromkeys(_OTHER, 0xFFFD)


class GGUFTokenizer:
    """Text to ids and back by the tokenizer of a GGUF file; see `Tokenizer` for what it promises.

    A text begins with the file's begin token if the file says so (`add_bos_token`) or, where it
    says nothing, if its family does so by default (Llama 3, Mistral's Tekken), as in llama.cpp.
    Control tokens are those typed control, unknown or unused, and the begin and end tokens.

    Parameters
    ----------
    file : GGUFFile

    Raises
    ------
    ModelFileError
        If the file's tokenizer is of another kind, or is incomplete.
    """

    def __init__(self, file: GGUFFile) -> None:
        kind = file.value("tokenizer.ggml.model", str)
        if kind != "gpt2":
            raise ModelFileError(
                f"{file.path} has a tokenizer of the kind {kind!r}; "
                "Draftscope does byte-level BPE, which files call 'gpt2'"
            )
        rule = rule_named(file.value("tokenizer.ggml.pre", str, "default"))
        self._names: list[str] = _strings(file, "tokenizer.ggml.tokens")
        types = _types(file, len(self._names))
        self._begin = self._token(file, "bos")
        self._end = self._token(file, "eos")
        ends = {self._end, self._token(file, "eot"), self._token(file, "eom")}
        self.end_tokens: frozenset[int] = frozenset(token for token in ends if token is not None)
        self._control = {token for token, kind in enumerate(types) if kind in (UNKNOWN, CONTROL, UNUSED)}
        self._control |= self.end_tokens if self._begin is None else self.end_tokens | {self._begin}
        self._as_written = self._control | {token for token, kind in enumerate(types) if kind == USER_DEFINED}
        self._adds_begin = file.value("tokenizer.ggml.add_bos_token", bool, rule.begins) and self._begin is not None
        self._template = file.value("tokenizer.chat_template", str, "")
        user_defined = [name for name, kind in zip(self._names, types, strict=True) if kind == USER_DEFINED]
        vocabulary = {name: token for token, name in enumerate(self._names) if token not in self._control}
        self._missing = frozenset(byte for letter, byte in BYTE_OF.items() if letter not in vocabulary)
        self._encoder = _encoder(file, rule, vocabulary, user_defined)

    @property
    def vocab_size(self) -> int:
        """Number of ids."""
        return len(self._names)

    @property
    def has_chat_template(self) -> bool:
        """Whether the file came with one."""
        return bool(self._template)

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, behind the begin token if the file wants one; control tokens not interpreted.

        Raises
        ------
        PromptError
            If the text has a character that the vocabulary cannot spell.
        """
        ids = self._encode(text)
        return [self._begin, *ids] if self._adds_begin and self._begin is not None else ids

    def chat(self, text: str) -> list[int]:
        """The ids of the file's chat template with `text` as what the user says.

        Raises
        ------
        SettingError
            If the file has no chat template.
        ModelFileError
            If the template fails.
        PromptError
            If the template refuses, or the text cannot be spelled.
        """
        if not self._template:
            raise SettingError("this model has no chat template; give the text as it is")
        ids: list[int] = []
        for piece, is_control in render(self._template, text, self._control_ids.keys(), self._template_names):
            ids += [self._control_ids[piece]] if is_control else self._encode(piece)
        if self._adds_begin and self._begin is not None and ids[:1] != [self._begin]:
            ids.insert(0, self._begin)
        return ids

    def token_bytes(self, token: int) -> bytes:
        """The bytes that `token` stands for; for a control token, its name."""
        name = self._names[token]
        return name.encode() if token in self._as_written else _bytes_of(name)

    def is_control(self, token: int) -> bool:
        """Whether `token` is no part of the text."""
        return token in self._control

    @cached_property
    def _control_ids(self) -> dict[str, int]:
        return {self._names[token]: token for token in sorted(self._control, reverse=True) if self._names[token]}

    @cached_property
    def _template_names(self) -> dict[str, str]:
        begin, end = ("" if token is None else self._names[token] for token in (self._begin, self._end))
        return {"bos_token": begin, "eos_token": end}

    def _token(self, file: GGUFFile, kind: str) -> int | None:
        key = f"tokenizer.ggml.{kind}_token_id"
        if key not in file.fields:
            return None
        token = file.value(key, int)
        if not 0 <= token < len(self._names):
            raise ModelFileError(f"{file.path} has {token} as {key}; its ids go from 0 to {len(self._names) - 1}")
        return token

    def _encode(self, text: str) -> list[int]:
        try:
            spelled = text.encode()
        except UnicodeEncodeError as error:
            raise PromptError(f"the text has half a character at place {error.start}; remove it") from error
        lost = self._missing.intersection(spelled)
        if lost:
            where = next(letter for letter in text if lost.intersection(letter.encode()))
            raise PromptError(f"the text has {where!r} in it, which this model's vocabulary cannot spell; remove it")
        return self._encoder.encode(text, add_special_tokens=False).ids


def _strings(file: GGUFFile, key: str) -> list[str]:
    strings = file.fields.get(key, [])
    if not strings or not isinstance(strings, list) or not isinstance(strings[0], str):
        raise ModelFileError(f"{file.path} has no {key}, which its tokenizer needs; convert the model again")
    return strings


def _types(file: GGUFFile, n_tokens: int) -> list[int]:
    types = file.fields.get("tokenizer.ggml.token_type", [NORMAL] * n_tokens)
    if not isinstance(types, list) or len(types) != n_tokens:
        raise ModelFileError(f"{file.path} does not have one token type for each of its {n_tokens} tokens; damaged")
    return types


def _bytes_of(name: str) -> bytes:
    try:
        return name.translate(_TO_LATIN).encode("latin-1")
    except UnicodeEncodeError:  # not spelled in the alphabet: meant as it is written
        return name.encode()


def _encoder(file: GGUFFile, rule: SplitRule, vocabulary: dict[str, int], user_defined: list[str]) -> Tokenizer:
    from tokenizers import AddedToken, Regex, Tokenizer
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split

    lines = (line.partition(" ") for line in _strings(file, "tokenizer.ggml.merges"))
    pairs = [(left, right) for left, _, right in lines]
    try:
        model = BPE(vocabulary, pairs, ignore_merges=rule.whole_words)
    except Exception:  # the package's own word for a merge of what is not in the vocabulary, such as a control token
        known = [pair for pair in pairs if {*pair, "".join(pair)} <= vocabulary.keys()]
        model = BPE(vocabulary, known, ignore_merges=rule.whole_words)
    encoder = Tokenizer(model)
    splits = [Split(Regex(pattern), "isolated") for pattern in rule.patterns]
    encoder.pre_tokenizer = Sequence([*splits, ByteLevel(add_prefix_space=False, use_regex=False)])
    encoder.add_tokens([AddedToken(name, normalized=False) for name in user_defined if name])
    return encoder
