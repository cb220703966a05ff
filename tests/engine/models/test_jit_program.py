"""A pass that threads share: the rows of one thread, bit for bit, whoever helps, however late, and whatever fails."""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import tests.engine.models.jit_backend  # noqa: F401
from engine.errors import ModelFileError
from engine.models.gguf_loader import load_gguf
from engine.models.jit import loader, passes, program
from engine.models.jit.backend import JitTransformer
from engine.models.jit.team import Team
from engine.models.threads import THREADS_VARIABLE
from engine.tree import branch
from tests.engine.models.tiny_files import TOKENS, Tiny, write

SHAPE = Tiny(head_dim=16, n_rope_dims=16, width=64, ffn_width=96, context_length=300)
IDS = np.random.default_rng(3).integers(0, len(TOKENS), 300).tolist()
NEAR = 0.1  # of what logits are spread: activations and weights are rounded to 8 bits, which is off by 0.03 to 0.07
SECONDS = 60  # in which a pass that does not hang is over by far


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "tiny.gguf", SHAPE)


@pytest.fixture
def model(path: Path) -> JitTransformer:
    return load(path)


def load(path: Path) -> JitTransformer:
    model = load_gguf(path, backend="numba").model
    assert isinstance(model, JitTransformer)
    return model


def in_time(*works: Callable[[], object]) -> list[object]:
    """What the works give, each in a thread; a failure if one does not end."""
    pool = ThreadPoolExecutor(len(works))
    try:
        return [future.result(SECONDS) for future in [pool.submit(work) for work in works]]
    finally:
        pool.shutdown(wait=False)


def call_until_done(team: Team) -> None:
    """Until a helper has done something; a call is dropped while as many wait as there are helpers."""
    done = threading.Event()
    while not done.wait(0.01):
        team.call(done.set, ())


def many_rows(model: JitTransformer) -> np.ndarray:
    """Of a prompt of more than one chunk, of single tokens, of blocks and of a tree."""
    model = model.fork()
    pieces = [model.logits(IDS[:280], 280), model.logits(IDS[:281]), model.logits(IDS[:286], 5)]
    return np.concatenate([*pieces, model.tree_logits(IDS[:287], [5, 6, 7, 8], [-1, 0, -1, 2])])


def test_rows_do_not_depend_on_the_number_of_threads(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for n_threads in (1, 2, 3, 5):
        monkeypatch.setenv(THREADS_VARIABLE, str(n_threads))
        model = load(path)
        found.append(in_time(lambda model=model: many_rows(model))[0])
    assert np.isfinite(found[0]).all()
    for rows in found[1:]:
        np.testing.assert_array_equal(rows, found[0])


def test_passes_of_several_threads_at_once_do_not_disturb_each_other(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(THREADS_VARIABLE, "3")
    other = write(tmp_path / "other.gguf", Tiny(**{**vars(SHAPE), "n_layers": 3, "n_kv_heads": 1}))
    models = [load(path), load(other)]
    expected = [many_rows(model) for model in models]

    def often(place: int) -> None:
        for _ in range(6):
            np.testing.assert_array_equal(many_rows(models[place]), expected[place])

    in_time(*(lambda place=place: often(place) for place in (0, 1, 0, 1, 0)))


def test_helpers_that_come_late_or_never_change_nothing(model: JitTransformer) -> None:
    expected = many_rows(model)
    busy, let_go = threading.Event(), threading.Event()
    team = Team(1)

    def hold() -> None:
        busy.set()
        let_go.wait()

    team.call(hold, ())
    assert busy.wait(SECONDS)
    fork = model.fork()
    fork._team = team
    fork.fork = lambda: fork  # type: ignore[method-assign]
    np.testing.assert_array_equal(in_time(lambda: many_rows(fork))[0], expected)  # nobody helps
    let_go.set()  # the helper meets passes that are over long ago
    in_time(lambda: call_until_done(team))
    np.testing.assert_array_equal(in_time(lambda: many_rows(fork))[0], expected)


def test_a_pass_that_fails_before_it_begins_frees_its_helpers(
    model: JitTransformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork, expected = model.fork(), model.fork().logits(IDS[:9])
    fork._team = Team(1)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(passes, "run", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fork.logits(IDS[:9])
    in_time(lambda: call_until_done(fork._team))
    np.testing.assert_array_equal(fork.logits(IDS[:9]), expected)


def test_all_families_and_sizes_share_one_compiled_program(tmp_path: Path) -> None:
    for family in ("llama", "qwen2", "qwen3"):
        many_rows(load(write(tmp_path / f"{family}.gguf", Tiny(**{**vars(SHAPE), "family": family}))))
    assert len(program.run.signatures) == 1
    assert len(program.assist.signatures) == 1


def test_parts_of_a_product_cover_every_pair_once() -> None:
    for n_parts in range(1, 33):
        for n_pairs in range(1, 300):
            firsts = [program._first_pair(n_pairs, behind, n_parts) for behind in range(n_parts, -1, -1)]
            assert (firsts[0], firsts[-1]) == (0, n_pairs)
            assert firsts == sorted(firsts)  # each part stops where the next begins


@pytest.mark.parametrize("head_dim", [10, 72])
@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_sizes_that_fill_no_block_give_the_same_rows_in_every_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head_dim: int, family: str
) -> None:
    """Alone, in a block, along the branch of a tree; and near those of numpy."""
    monkeypatch.setenv(THREADS_VARIABLE, "3")
    odd = Tiny(family, width=50, ffn_width=70, head_dim=head_dim, n_rope_dims=head_dim, context_length=100)
    path = write(tmp_path / "odd.gguf", odd)
    model = load(path)

    def compare() -> None:
        one_by_one = model.fork()
        alone = np.concatenate([one_by_one.logits(IDS[:stop]) for stop in range(1, 41)])
        np.testing.assert_array_equal(model.fork().logits(IDS[:40], 40), alone)
        for first in (1, 7, 30):  # blocks behind a part that was read before
            block = model.fork()
            block.logits(IDS[:first])
            np.testing.assert_array_equal(block.logits(IDS[:40], 40 - first), alone[first:])
        tokens, parents = [*IDS[30:34], 5, 6, 7], [-1, 0, 1, 2, 0, 4, -1]
        rows = model.fork().tree_logits(IDS[:30], tokens, parents)
        np.testing.assert_array_equal(rows[:5], alone[29:34])
        for node in range(len(tokens)):
            way = [tokens[place] for place in branch(parents, node)]
            np.testing.assert_array_equal(rows[node + 1 : node + 2], model.fork().logits([*IDS[:30], *way]))
        expected = load_gguf(path).model.logits(IDS[:40], 40)
        assert (alone - expected).std() < NEAR * expected.std()

    in_time(compare)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # Python warns of what is tested here
def test_a_process_that_is_forked_while_a_thread_runs_a_pass_computes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(THREADS_VARIABLE, "3")
    model = load(path)
    expected = many_rows(model)
    begun, forked = threading.Event(), threading.Event()
    run = passes.run

    def run_later(numbers: np.ndarray) -> None:
        """The helpers have been called, and wait for the stages."""
        begun.set()
        forked.wait(SECONDS)
        run(numbers)

    monkeypatch.setattr(passes, "run", run_later)
    with ThreadPoolExecutor(1) as pool:
        rows_of_parent = pool.submit(many_rows, model)
        assert begun.wait(SECONDS)
        found = in_a_child(lambda: rows_and_help(model, run))
        forked.set()
        np.testing.assert_array_equal(rows_of_parent.result(SECONDS), expected)
    assert found, "the child failed, or did not end"
    np.testing.assert_array_equal(np.frombuffer(found, np.float32).reshape(expected.shape), expected)


def rows_and_help(model: JitTransformer, run: Callable[..., None]) -> bytes:
    """The rows, once with and once without helpers that are sure to be there."""
    passes.run = run
    rows = many_rows(model)
    call_until_done(model._team)
    np.testing.assert_array_equal(many_rows(model), rows)
    return rows.tobytes()


def in_a_child(work: Callable[[], bytes]) -> bytes:
    """What a forked process gives; nothing, if it fails or does not end."""
    source, sink = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(source)
            with os.fdopen(sink, "wb") as file:
                file.write(work())
        finally:
            os._exit(0)  # the tests go on in the parent alone
    os.close(sink)
    with os.fdopen(source, "rb") as file:
        if not select.select([file], [], [], SECONDS)[0]:
            os.kill(child, signal.SIGKILL)
        given = file.read()
    os.waitpid(child, 0)
    return given


def test_heads_are_read_in_pieces(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = load(path).logits(IDS[:5])
    monkeypatch.setattr(loader, "ROWS_AT_ONCE", 64)
    np.testing.assert_array_equal(load(path).logits(IDS[:5]), expected)


def test_progress_counts_the_layers_and_may_end_it(path: Path) -> None:
    load(path)  # from here on the program is compiled, and nothing is told of that
    told: list[tuple[str, int, int]] = []
    load_gguf(path, backend="numba", progress=lambda *parts: told.append(parts))
    assert told == [(loader.PACKING, done, SHAPE.n_layers) for done in range(1, SHAPE.n_layers + 1)]

    def refuse(doing: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_gguf(path, backend="numba", progress=refuse)


def test_a_model_that_overflows_says_so_in_its_rows(path: Path) -> None:
    """Whole numbers of 8 bits could hide what is not finite, and give a row of zeros for it."""
    tensors = SHAPE.tensors()
    tensors["blk.0.ffn_norm.weight"] = np.full(SHAPE.width, 1e38, np.float32)
    for backend_name in ("numpy", "numba"):
        with np.errstate(all="ignore"):
            rows = load_gguf(write(path, SHAPE, tensors), backend=backend_name).model.logits(IDS[:3])
        assert not np.isfinite(rows).any()


def test_left_over_and_missing_tensors_are_refused(tmp_path: Path) -> None:
    tensors = SHAPE.tensors()
    more = write(tmp_path / "more.gguf", SHAPE, tensors | {"blk.0.odd.weight": np.ones(4, np.float32)})
    with pytest.raises(ModelFileError, match=r"1 tensors that a llama model .* blk\.0\.odd\.weight"):
        load_gguf(more, backend="numba")
    for name in ("blk.1.ffn_down.weight", "blk.0.attn_norm.weight", "token_embd.weight"):
        less = write(tmp_path / f"{name}.gguf", SHAPE, {key: value for key, value in tensors.items() if key != name})
        messages = []
        for backend_name in ("numpy", "numba"):
            with pytest.raises(ModelFileError, match=name) as caught:
                load_gguf(less, backend=backend_name)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]
