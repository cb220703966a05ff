"""Which draft head belongs to a target, and a drafter made of it.

A head reads hidden rows and head rows of one model, so it is of use with the very file that it was
trained for; the file's SHA-256 says which that is. Heads that ship lie in `drafters/heads`.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from engine.drafters.combined import LookupFirst
from engine.drafters.eagle import EagleDrafter
from engine.drafters.head_compiled import CompiledHead, Graphs, compile_head
from engine.drafters.head_file import HeadWeights, read_head
from engine.drafters.head_network import HeadNetwork, NumpyHead
from engine.drafters.ngram import Match
from engine.drafters.screen import Screen
from engine.drafters.suffix import SuffixDecoding
from engine.drafters.suffix_first import SuffixFirst
from engine.errors import ModelFileError, SettingError
from engine.models import catalog
from engine.models.base import Model
from engine.models.pull import DOWNLOADS
from engine.models.token_rows import TokenRows

if TYPE_CHECKING:
    from engine.drafters.head_jit import PackedHead

__all__ = ["eagle", "eagle_and_lookup", "eagle_and_suffix", "has_shipped_head"]

HEADS = Path(__file__).parent / "drafters" / "heads"
SHIPPED = {"smollm2-135m": HEADS / "smollm2-135m.npz"}  # by the catalogue's name of the target


def has_shipped_head(target: str) -> bool:
    """Whether a head ships for `target`, a name of the catalogue or the path of a GGUF file.

    Examples
    --------
    >>> has_shipped_head("markov")
    False
    """
    if target in SHIPPED:
        return True
    path = _path(target)
    return path is not None and path.is_file() and _shipped(path) is not None


def eagle(target: str, model: Model, head: str = "") -> EagleDrafter:
    """A drafter that reads the hidden rows of `model`.

    Parameters
    ----------
    target : str
        A name of the catalogue or the path of a GGUF file: what `model` was loaded from.
    model : Model
        The very object that decodes.
    head : str, default ""
        The path of a draft head; without one, the head that ships with the target.

    Raises
    ------
    SettingError
        If no head ships for the target, the head was trained for another file, or the target does
        not show its hidden rows.
    ModelError
        If a file is not there or cannot be used.
    """
    path = _path(target)
    if path is None:
        raise SettingError(f"{target} is no model file, and a draft head needs one; choose model, ngram or none")
    chosen = Path(head).expanduser() if head else _shipped(path)
    if chosen is None:
        raise SettingError(
            f"no draft head ships for {target}; train one as tools/train_draft/README.md says and choose "
            "eagle:PATH of it, or choose ngram or none"
        )
    made = (chosen, _stamp(chosen), path, _stamp(path))
    weights, rows = _parts(*made)
    network: HeadNetwork
    backend = getattr(model, "backend", "")  # what runs the target runs the head
    if backend == "numba":
        from engine.drafters.head_jit import JitHead  # heavy: numba itself, which is loaded then

        network = JitHead(_packed(*made), weights, rows.head, model.context_length)
    elif backend == "ort":
        network = CompiledHead(_graphs(*made), weights, rows.head, model.context_length)
    else:
        network = NumpyHead(weights, _screen(*made), model.context_length)
    return EagleDrafter(model, weights, rows, network)


def eagle_and_lookup(
    target: str,
    model: Model,
    head: str = "",
    max_n: int = 3,
    match: Match = "recent",
) -> LookupFirst:
    """Prompt lookup where it is rather sure, else the head; see `eagle` and `LookupFirst`."""
    return LookupFirst(eagle(target, model, head), max_n, match)


def eagle_and_suffix(target: str, model: Model, head: str, suffix: SuffixDecoding) -> SuffixFirst:
    """Suffix decoding where its match is long enough, else the head; see `eagle` and `SuffixFirst`."""
    return SuffixFirst(eagle(target, model, head), suffix)


def _path(target: str) -> Path | None:
    """The GGUF file behind a name or a path; None for an embedded model."""
    if catalog.is_path(target):
        return Path(target).expanduser()
    return catalog.path_of(target)


def _shipped(path: Path) -> Path | None:
    """The head that ships for the file at `path`, told by its content."""
    for name, head in SHIPPED.items():
        if DOWNLOADS[name].is_whole(path) and _sha256(path, _stamp(path)) == DOWNLOADS[name].sha256:
            return head
    return None


def _stamp(path: Path) -> tuple[int, int]:
    """Time of change and size, by which a changed file is told; zeros where there is none."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=8)
def _sha256(path: Path, stamp: tuple[int, int]) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as failure:
        raise ModelFileError(f"{path} cannot be read: {failure.strerror}; check that you may read it") from failure


@lru_cache(maxsize=2)
def _parts(
    head: Path, head_stamp: tuple[int, int], target: Path, target_stamp: tuple[int, int]
) -> tuple[HeadWeights, TokenRows]:
    """The head's weights and its target's rows, read once."""
    weights = read_head(head)
    found = _sha256(target, target_stamp)
    if weights.target_sha256 != found:
        raise SettingError(
            f"the draft head {head} was trained for another file (SHA-256 {weights.target_sha256[:12]}...) than "
            f"{target} (SHA-256 {found[:12]}...); a head is of use with its own target alone: choose that one, "
            "or train a head for this one as tools/train_draft/README.md says"
        )
    return weights, TokenRows(target, weights.tokens)


@lru_cache(maxsize=2)
def _screen(head: Path, head_stamp: tuple[int, int], target: Path, target_stamp: tuple[int, int]) -> Screen:
    weights, rows = _parts(head, head_stamp, target, target_stamp)
    return Screen(weights, rows.head)


@lru_cache(maxsize=2)
def _graphs(head: Path, head_stamp: tuple[int, int], target: Path, target_stamp: tuple[int, int]) -> Graphs:
    weights, rows = _parts(head, head_stamp, target, target_stamp)
    return compile_head(weights, rows.head)


@lru_cache(maxsize=2)
def _packed(head: Path, head_stamp: tuple[int, int], target: Path, target_stamp: tuple[int, int]) -> PackedHead:
    from engine.drafters.head_jit import pack_head

    weights, rows = _parts(head, head_stamp, target, target_stamp)
    return pack_head(weights, rows.head)
