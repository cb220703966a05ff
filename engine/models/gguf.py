"""A GGUF file: its metadata as Python values, its tensors as float32 arrays.

The `gguf` package, which belongs to llama.cpp, reads and de-quantises; this file turns whatever
it stumbles over into an error that a user can act on.  It knows nothing of models: see
`architecture` and `weights` for that.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.errors import ModelFileError, ModelNotFound

if TYPE_CHECKING:
    from gguf import GGUFReader, ReaderField, ReaderTensor

__all__ = ["GGUFFile", "read_gguf"]

Value = TypeVar("Value", str, int, float, bool)

_VERSIONS = (2, 3)
_HEAD = struct.Struct("<4sI")  # magic and version, little-endian
_LENGTH = struct.Struct("<Q")  # of a string


@dataclass(frozen=True, slots=True, eq=False)
class GGUFFile:
    """An open file: the tensors stay on disk until they are asked for.

    Attributes
    ----------
    path : Path
    fields : mapping
        Metadata key to str, int, float, bool or a list of these.
    tensors : mapping
        Tensor name to the package's view of it.
    """

    path: Path
    fields: Mapping[str, Any]
    tensors: Mapping[str, ReaderTensor]

    def value(self, key: str, kind: type[Value], default: Value | None = None) -> Value:
        """The metadata at `key`, as a `kind`.

        Raises
        ------
        ModelFileError
            If the key is absent and there is no default, or it holds something else.
        """
        found = self.fields.get(key, default)
        if found is None:
            raise ModelFileError(f"{self.path} has no {key}, which is needed to run it; convert the model again")
        if kind is float and type(found) is int:
            found = float(found)
        if type(found) is not kind or (isinstance(found, float) and not math.isfinite(found)):
            raise ModelFileError(
                f"{self.path} has {str(found)[:60]!r} as {key}; expected a value of type {kind.__name__}"
            )
        return found

    def tensor(self, name: str, *shape: int, rows: slice = slice(None)) -> NDArray[np.float32]:
        """The tensor `name`, or some of its rows, de-quantised; the whole is checked to have `shape` (rows first).

        Raises
        ------
        ModelFileError
            If it is absent, has another shape, is quantised in a way that the `gguf` package
            cannot undo, or holds values that are not finite.
        """
        from gguf import dequantize

        if name not in self.tensors:
            raise ModelFileError(
                f"{self.path} has no tensor {name}; the file is incomplete or not the kind of model that it says it is"
            )
        tensor = self.tensors[name]
        try:
            # copied: float32 tensors come back as views of the file, which may change or go
            with np.errstate(all="ignore"):  # what is not finite is refused below
                array = np.array(dequantize(tensor.data[rows], tensor.tensor_type), np.float32, order="C")
        except (NotImplementedError, ValueError) as error:
            raise ModelFileError(
                f"{self.path} stores {name} as {tensor.tensor_type.name}, which the installed gguf package cannot "
                "de-quantise; use a file of another quantisation, such as Q8_0, or a newer gguf package"
            ) from error
        found = (len(tensor.data), *array.shape[1:])
        if found != shape:
            raise ModelFileError(f"{self.path} has {name} of shape {found}; its metadata promise {shape}")
        with np.errstate(invalid="ignore"):  # both infinities
            total = array.sum(dtype=np.float64)
        if not np.isfinite(total):
            raise ModelFileError(f"{self.path} has values in {name} that are not finite; the file is damaged")
        return array


def read_gguf(path: Path | str) -> GGUFFile:
    """Open the GGUF file at `path` and read its metadata.

    Parameters
    ----------
    path : Path or str

    Raises
    ------
    ModelNotFound
        If there is nothing at `path`.
    ModelFileError
        If it is not a GGUF file, is cut short, or is one part of several.

    Examples
    --------
    >>> read_gguf("no-such-file.gguf")
    Traceback (most recent call last):
    engine.errors.ModelNotFound: there is no file no-such-file.gguf; give the path of a GGUF file
    """
    path = Path(path)
    _check_head(path)
    reader = _reader(path)
    try:
        fields = {key: _contents(field) for key, field in reader.fields.items()}
    except (ValueError, IndexError) as error:
        raise _damaged(path) from error
    n_parts = fields.get("split.count", 1)
    if n_parts != 1:
        raise ModelFileError(
            f"{path} is one part of a model split over {n_parts} files; join them first (llama-gguf-split --merge)"
        )
    return GGUFFile(path, fields, {tensor.name: tensor for tensor in reader.tensors})


def _check_head(path: Path) -> None:
    if path.is_dir():
        raise ModelFileError(f"{path} is a directory; give the path of the GGUF file in it")
    if not path.exists():
        raise ModelNotFound(f"there is no file {path}; give the path of a GGUF file")
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD.size)
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}; check that you may read it") from error
    if not head.startswith(b"GGUF"):
        begins = f"begins with {head[:4]!r}" if head else "is empty"
        raise ModelFileError(f"{path} is not a GGUF file: it {begins}, a GGUF file begins with b'GGUF'")
    if len(head) < _HEAD.size:
        raise _damaged(path)
    _, version = _HEAD.unpack(head)
    if version in (own << 24 for own in _VERSIONS):
        raise ModelFileError(f"{path} was written for machines of the other byte order; convert the model again")
    if version not in _VERSIONS:
        raise ModelFileError(
            f"{path} is a GGUF of version {version}; Draftscope reads 2 and 3, convert the model again"
        )


def _reader(path: Path) -> GGUFReader:
    from gguf import GGUFReader, GGUFValueType

    class Reader(GGUFReader):
        """The package's reader over a plain array, with a quick way through a vocabulary.

        Slicing a memmap a million times takes seconds, and so do a hundred thousand strings or
        numbers that are read one by one.
        """

        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, np.asarray(value) if name == "data" else value)

        def _get_field_parts(self, orig_offs: int, raw_type: int) -> tuple[int, list[Any], list[int], list[Any]]:
            if raw_type != GGUFValueType.ARRAY or self.byte_order != "I":
                return super()._get_field_parts(orig_offs, raw_type)
            head = self.data[orig_offs : orig_offs + 12].tobytes()
            kind, count, start = int.from_bytes(head[:4], "little"), int.from_bytes(head[4:], "little"), orig_offs + 12
            if kind == GGUFValueType.STRING:
                strings, size = _strings(self.data.data, start, count)
                parts: list[Any] = [strings]
            elif kind in self.gguf_scalar_to_np:
                number = np.dtype(self.gguf_scalar_to_np[GGUFValueType(kind)])
                size = count * number.itemsize
                if start + size > len(self.data):
                    raise ValueError("a list of numbers reaches beyond the end of the file")
                parts = [self.data[start : start + size].view(number)]
            else:
                return super()._get_field_parts(orig_offs, raw_type)
            return 12 + size, parts, list(range(len(parts))), [GGUFValueType.ARRAY, GGUFValueType(kind)]

    try:
        with np.errstate(over="raise"):  # a damaged length must not wrap around
            reader = Reader(path)
    except (ValueError, IndexError, KeyError, TypeError, ArithmeticError, MemoryError, OSError, RuntimeError) as error:
        if "GGMLQuantizationType" in str(error):
            raise ModelFileError(
                f"{path} has a tensor type that the installed gguf package does not know ({error}); "
                "use a file of another quantisation, or a newer gguf package"
            ) from error
        if isinstance(error, OSError) and error.strerror:
            raise ModelFileError(f"{path} cannot be read: {error.strerror}; check that you may read it") from error
        raise _damaged(path) from error
    return reader


def _contents(field: ReaderField) -> Any:
    """What a field holds; a list of strings stands in it as `_strings` has read it."""
    last: Any = field.parts[-1]
    return last if isinstance(last, list) else field.contents()


def _strings(data: memoryview, start: int, count: int) -> tuple[list[str], int]:
    """`count` strings from `start` on, each behind its length in 8 bytes; and how many bytes they take."""
    ends, offset = [], start
    for _ in range(count):
        begin = offset + _LENGTH.size
        if begin > len(data):
            raise ValueError("the length of a string reaches beyond the end of the file")
        offset = begin + _LENGTH.unpack_from(data, offset)[0]
        ends.append(offset - start)
    if offset > len(data):
        raise ValueError("a string reaches beyond the end of the file")
    raw, begins = data[start:offset].tobytes(), [0, *ends]
    return [raw[begin + _LENGTH.size : end].decode() for begin, end in zip(begins, ends, strict=False)], len(raw)


def _damaged(path: Path) -> ModelFileError:
    """What a user can do about it; the reader's own words, about arrays and offsets, go with the traceback."""
    return ModelFileError(f"{path} ({path.stat().st_size:,} bytes) is cut short or damaged; fetch it again")
