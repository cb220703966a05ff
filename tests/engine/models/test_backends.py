"""Which backend runs a file, and what is told of it."""

from __future__ import annotations

import builtins
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.build import build
from engine.errors import BackendError, MissingPackage, SettingError
from engine.folders import cache_folder
from engine.models import backends, catalog
from engine.models.gguf_loader import load_gguf
from engine.models.transformer import Transformer
from engine.spec import RunSpec
from engine.values import Started
from tests.engine.models.tiny_files import Tiny, write

WIDE = Tiny(head_dim=16, n_rope_dims=16)
NARROW = Tiny(head_dim=6)
needs_numba = pytest.mark.skipif(not backends.can_run("numba"), reason="numba does not run here")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "tiny.gguf", WIDE)


@pytest.fixture
def without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(backends.PACKAGES, "numba", ("numba_that_is_not_there",))


@needs_numba
def test_auto_takes_numba(path: Path, narrow: Path) -> None:
    assert catalog.load(narrow).model.backend == "numba"
    for backend, expected in (("auto", "numba"), ("numba", "numba"), ("ort", "ort"), ("numpy", "numpy")):
        assert catalog.load(path, backend=backend).model.backend == expected


def test_auto_takes_the_compiled_graph_where_numba_is_not(path: Path, without_numba: None) -> None:
    loaded = catalog.load(path)
    assert loaded.model.backend == "ort"
    assert loaded.note == ""  # that it is not installed is known


@pytest.fixture
def narrow(tmp_path: Path) -> Path:
    """A file that the graph cannot run."""
    return write(tmp_path / "narrow.gguf", NARROW)


@needs_numba
def test_numba_is_not_for_a_processor_without_avx2(narrow: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_has_instructions", lambda: False)
    loaded = catalog.load(narrow)
    assert isinstance(loaded.model, Transformer)
    assert "AVX2" not in loaded.note
    with pytest.raises(BackendError, match=r"needs a processor with AVX2 and FMA.* use --backend ort"):
        catalog.load(narrow, backend="numba")


def test_numba_may_not_be_installed(narrow: Path, without_numba: None) -> None:
    assert isinstance(catalog.load(narrow).model, Transformer)
    with pytest.raises(MissingPackage, match="pip install numba_that_is_not_there"):
        catalog.load(narrow, backend="numba")


@needs_numba
@pytest.mark.parametrize("failure", [ImportError("Numba needs NumPy 1.0 or less"), RuntimeError("no locator")])
def test_numba_may_not_be_loadable(narrow: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception) -> None:
    """As of a numpy that is too new for it, or where it cannot keep what it compiles."""

    def refuse(name: str, *_: object) -> None:
        if name == "engine.models.jit.loader":
            raise failure
        return found(name, *_)

    found = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", refuse)
    assert isinstance(catalog.load(narrow).model, Transformer)
    with pytest.raises(BackendError, match=f"the backend numba cannot be loaded: .*{failure}.* --backend ort"):
        catalog.load(narrow, backend="numba")


@needs_numba
def test_the_folder_of_numbas_code_is_made_again(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be deleted while the process lives."""
    from engine.models.jit import loader

    gone = tmp_path / "deleted" / "code"
    monkeypatch.setattr(loader, "CODE", gone)
    assert catalog.load(path).model.backend == "numba"
    assert gone.is_dir()


@needs_numba
def test_auto_falls_back_where_numbas_code_cannot_be_kept(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.models.jit import loader

    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setattr(loader, "CODE", tmp_path / "file" / "code")
    loaded = catalog.load(path)
    assert loaded.model.backend == "ort"
    assert loaded.note.startswith("ort runs tiny: the backend numba cannot keep its compiled code in ")
    assert "Not a directory; see" in loaded.note
    with pytest.raises(BackendError, match=r"numba cannot keep its compiled code in .*code: Not a dir.* --backend ort"):
        catalog.load(path, backend="numba")


@needs_numba
def test_auto_falls_back_where_numba_fails_while_it_compiles(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core.errors import LoweringError, TypingError

    from engine.models.jit import passes

    failures = {
        OSError(28, "No space left on device"): "cannot keep its compiled code in .*: No space left on device; see",
        PermissionError(13, "Permission denied"): "cannot keep its compiled code in .*: Permission denied; see",
        OSError("a fault without a number"): "cannot keep its compiled code in .*: a fault without a number; see",
        TypingError("no such type\nFile 1"): r"cannot be compiled \(TypingError: no such type\); delete",
        LoweringError("no such instruction"): r"cannot be compiled \(LoweringError: no such instruction\); delete",
        RuntimeError("LLVM cannot\nTry"): r"cannot be compiled \(RuntimeError: LLVM cannot\); delete the folder .* try",
    }
    for failure, words in failures.items():

        def fail(*_: object, failure: Exception = failure) -> None:
            raise failure

        monkeypatch.setattr(passes, "run", fail)
        assert catalog.load(path).model.backend == "ort"
        with pytest.raises(BackendError, match=f"the backend numba {words}|of the backend numba {words}") as caught:
            catalog.load(path, backend="numba")
        assert "--backend ort" in str(caught.value)
        assert "\n" not in str(caught.value)


@needs_numba
def test_a_folder_for_numbas_code_that_cannot_be_is_named_with_its_variable(path: Path, tmp_path: Path) -> None:
    """In a process of its own: the folder is made where numba is imported."""
    (tmp_path / "file").write_text("not a folder")
    command = [sys.executable, "-m", "engine", "run", "--target", str(path), "--prompt", "hello", "--max-tokens", "2"]
    command += ["--drafter", "none", "--backend"]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "file")}
    words = f"the backend numba cannot keep its compiled code in {tmp_path / 'file'}"
    advice = f"set NUMBA_CACHE_DIR (it is {tmp_path / 'file'}) to another folder, or use --backend ort"
    for backend, code, first_words in (("auto", 0, f"note: ort runs tiny: {words}"), ("numba", 2, f"error: {words}")):
        ended = subprocess.run(
            [*command, backend], env=environment, capture_output=True, encoding="utf-8", timeout=120, check=False
        )
        assert ended.returncode == code
        assert ended.stderr.startswith(first_words)
        assert ended.stderr.count("\n") == 1
        assert advice in ended.stderr


@pytest.mark.parametrize("name", ["markov", "noisy"])
def test_a_backend_for_an_embedded_model_is_told_to_do_nothing(name: str) -> None:
    assert catalog.load(name).note == ""
    assert "the backend numpy runs GGUF files alone: it does nothing for" in catalog.load(name, backend="numpy").note


@needs_numba
def test_the_memory_that_numba_needs_is_counted_by_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """0.75 byte a weight where all that is packed as one is of 4 bits, else 1.125."""
    from engine.models.jit import loader

    shape = Tiny(head_dim=16, n_rope_dims=16, width=64, ffn_width=96)
    tensors = shape.tensors()
    n_weights = sum(array.size for array in tensors.values())
    of_4_bits = {name for name, array in tensors.items() if array.ndim == 2}
    n_of_4_bits = sum(tensors[name].size for name in of_4_bits)
    n_of_qkv = sum(tensors[name].size for name in of_4_bits if name.split(".")[-2] in loader.QKV)
    cases = [
        (of_4_bits, n_of_4_bits),
        (of_4_bits - {"blk.1.attn_v.weight"}, n_of_4_bits - n_of_qkv),  # packed with all queries, keys and values
        (set(), 0),
    ]
    for place, (names, n_small) in enumerate(cases):
        path = write(tmp_path / f"{place}.gguf", shape, tensors, quantised=dict.fromkeys(names, "Q4_0"))
        needed = n_weights * 9 // 8 - n_small * 3 // 8
        monkeypatch.setattr(loader, "memory_of_machine", lambda needed=needed: needed)
        load_gguf(path, backend="numba")
        monkeypatch.setattr(loader, "memory_of_machine", lambda needed=needed: needed - 1)
        with pytest.raises(BackendError, match=r"GB packed, this machine has .* use a smaller model"):
            load_gguf(path, backend="numba")


def test_a_run_tells_the_notes_of_its_target_and_of_its_draft_model(
    path: Path, tmp_path: Path, without_numba: None
) -> None:
    narrow = write(tmp_path / "narrow.gguf", NARROW)

    def about(target: Path, draft: Path) -> list[str]:
        spec = RunSpec(prompt="hello", target=str(target), drafter=f"model:{draft}", max_tokens=2)
        return [note.partition(":")[0] for note in build(spec).notes]

    other = write(tmp_path / "other.gguf", NARROW)
    assert about(path, path) == []
    assert about(path, narrow) == ["numpy runs narrow"]
    assert about(narrow, path) == ["numpy runs narrow"]
    assert about(narrow, other) == ["numpy runs narrow", "numpy runs other"]


def test_auto_falls_back_where_the_model_cannot_be_compiled(tmp_path: Path, without_numba: None) -> None:
    path = write(tmp_path / "narrow.gguf", NARROW)
    loaded = catalog.load(path)
    assert isinstance(loaded.model, Transformer)
    assert "numpy runs narrow: " in loaded.note
    assert "heads are 6" in loaded.note
    assert catalog.load(path, backend="numpy").note == ""
    with pytest.raises(BackendError, match="heads are 6 numbers wide"):
        catalog.load(path, backend="ort")


def test_auto_falls_back_where_nothing_is_installed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("numba", "ort"):
        monkeypatch.setitem(backends.PACKAGES, name, ("onnxruntime_that_is_not_there",))
    assert isinstance(catalog.load(path).model, Transformer)
    with pytest.raises(MissingPackage, match="pip install onnxruntime_that_is_not_there"):
        catalog.load(path, backend="ort")


def test_auto_falls_back_where_the_cache_folder_cannot_be_written(path: Path, without_numba: None) -> None:
    (cache_folder() / "graphs").write_text("not a folder")
    assert isinstance(catalog.load(path).model, Transformer)
    with pytest.raises(BackendError, match="cannot be kept"):
        catalog.load(path, backend="ort")


def test_auto_ends_at_numpy_where_the_cache_folder_cannot_be_made(path: Path, tmp_path: Path) -> None:
    """In a process of its own: the folder of numba's code is made where numba is imported."""
    home = tmp_path / "file"
    home.write_text("not a folder")
    code = (
        "import sys; from engine.errors import BackendError; from engine.models import catalog\n"
        "loaded = catalog.load(sys.argv[1])\n"
        "print(type(loaded.model).__name__, loaded.note, sep='\\n')\n"
        "for backend in sys.argv[2:]:\n"
        "    try: catalog.load(sys.argv[1], backend=backend)\n"
        "    except BackendError as failure: print(failure)"
    )
    installed = [backend for backend in ("numba", "ort") if backends.can_run(backend)]
    ended = subprocess.run(
        [sys.executable, "-c", code, str(path), *installed],
        env={name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
        | {"DRAFTSCOPE_HOME": str(home)},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=True,
    )
    words = {
        "numba": "the backend numba cannot keep its compiled code: ",
        "ort": f"the compiled form of {path} cannot be kept: ",
    }
    reason = f"cannot make the cache folder {home / 'cache'}: Not a directory; set DRAFTSCOPE_HOME to a folder"
    advice = " that you may write to, or use --backend numpy"
    told = [f"{words[backend]}{reason}{advice}" for backend in installed]
    assert ended.stdout.splitlines() == ["Transformer", f"numpy runs tiny: {'; '.join(told)}", *told]


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(SettingError, match="choose auto, numba, ort, numpy"):
        catalog.load("markov", backend="cuda")
    with pytest.raises(SettingError, match="choose auto, numba, ort, numpy"):
        build(RunSpec(prompt="x", backend="cuda"))


@pytest.mark.parametrize(
    ("backend", "exact_rows", "expected"),
    [
        ("ort", True, ("ort", True)),
        ("ort", False, ("ort", False)),
        ("numpy", True, ("numpy", True)),
        pytest.param("numba", True, ("numba", True), marks=needs_numba),
        pytest.param("numba", False, ("numba", True), marks=needs_numba),
    ],
)
def test_a_run_says_what_computed_it(path: Path, backend: str, exact_rows: bool, expected: tuple[str, bool]) -> None:
    spec = RunSpec(
        target=str(path), drafter="ngram", prompt="hello hello", max_tokens=3, backend=backend, exact_rows=exact_rows
    )
    started = next(build(spec).events())
    assert isinstance(started, Started)
    assert (started.backend, started.exact_rows) == expected


def test_a_run_of_an_embedded_model_names_no_backend() -> None:
    started = next(build(RunSpec(prompt="The draft", max_tokens=3)).events())
    assert isinstance(started, Started)
    assert (started.backend, started.exact_rows) == ("", False)


def test_a_spec_written_before_there_were_backends_is_read() -> None:
    data = json.loads(RunSpec(prompt="x").to_json())
    del data["backend"], data["exact_rows"]
    assert RunSpec.from_json(json.dumps(data)) == RunSpec(prompt="x")
