"""The rows of a tree: in one pass they are those of plain calls along each branch, and leave no trace in a cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.errors import DraftError, PromptError
from engine.models.backends import can_run
from engine.models.base import HiddenModel, Model, TreeModel
from engine.models.callable import CallableModel
from engine.models.gguf_loader import load_gguf
from engine.models.markov import load_markov
from engine.models.noisy import load_noisy
from engine.models.onnx_backend import OnnxTransformer
from engine.models.tree_rows import rows_by_branch, tree_rows
from engine.tree import branch, chain, depths
from tests.engine.models.test_transformer import IDS, KINDS
from tests.engine.models.tiny_files import Tiny, write


def random_tree(rng: np.random.Generator, n: int, vocab_size: int) -> tuple[list[int], list[int]]:
    return rng.integers(0, vocab_size, n).tolist(), [int(rng.integers(-1, place)) for place in range(n)]


def node_by_node(model: Model, context: list[int], tokens: list[int], parents: list[int]) -> np.ndarray:
    """A plain call for every token, of a model that has read the same context and nothing else."""
    rows = []
    for node in range(-1, len(tokens)):
        fresh = model.fork()
        if len(context) > 1:
            fresh.logits(context[:-1])
        rows.append(fresh.logits([*context, *(tokens[place] for place in branch(parents, node))]))
    return np.concatenate(rows)


def tiny(tmp_path: Path, kind: str = "llama with a tied head", **changes: int) -> HiddenModel:
    shape = Tiny(**{**vars(KINDS[kind]), "context_length": 200, **changes})
    model = load_gguf(write(tmp_path / "tiny.gguf", shape)).model
    assert isinstance(model, HiddenModel)
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_the_transformer_equal_node_by_node_calls(tmp_path: Path, kind: str) -> None:
    model = tiny(tmp_path, kind)
    rng = np.random.default_rng(5)
    for n in (1, 2, 7, 20, 32):
        context = IDS[: int(rng.integers(1, 60))]
        tokens, parents = random_tree(rng, n, model.vocab_size)
        assert isinstance(model, TreeModel)
        model = model.fork()
        if len(context) > 1:
            model.logits(context[:-1])
        rows = model.tree_logits(context, tokens, parents)
        assert rows.shape == (n + 1, model.vocab_size)
        assert rows.dtype == np.float32
        np.testing.assert_array_equal(rows, node_by_node(model, context, tokens, parents))


def test_rows_of_a_larger_tree_are_as_good(tmp_path: Path) -> None:
    """More rows than are computed apart: equal up to rounding."""
    model = tiny(tmp_path)
    tokens, parents = random_tree(np.random.default_rng(1), 60, model.vocab_size)
    assert isinstance(model, TreeModel)
    rows = model.tree_logits(IDS[:9], tokens, parents)
    assert np.abs(rows - node_by_node(model, IDS[:9], tokens, parents)).max() < 1e-4


def test_a_chain_gives_the_rows_of_a_plain_call(tmp_path: Path) -> None:
    model = tiny(tmp_path)
    tokens = IDS[50:58]
    assert isinstance(model, TreeModel)
    rows = model.tree_logits(IDS[:30], tokens, chain(8))
    np.testing.assert_allclose(rows, model.fork().logits([*IDS[:30], *tokens], 9), atol=1e-4)


def test_a_tree_of_nothing_is_the_row_behind_the_context(tmp_path: Path) -> None:
    model = tiny(tmp_path)
    assert isinstance(model, TreeModel)
    np.testing.assert_array_equal(model.tree_logits(IDS[:30], [], []), model.fork().logits(IDS[:30]))


@pytest.mark.parametrize("taps", [None, (), (0, 1)])
def test_what_follows_a_tree_is_as_from_scratch(tmp_path: Path, taps: tuple[int, ...] | None) -> None:
    """After any branch, its end or a part of it, or none: logits, hidden rows and further trees."""
    model = tiny(tmp_path)
    assert isinstance(model, TreeModel)
    rng = np.random.default_rng(2)
    if taps is not None:
        model.hidden(IDS[:2], 1, taps)
    context = IDS[:30]
    for _ in range(40):
        tokens, parents = random_tree(rng, int(rng.integers(1, 12)), model.vocab_size)
        model.tree_logits(context, tokens, parents)
        way = [tokens[place] for place in branch(parents, int(rng.integers(-1, len(tokens))))]
        context = [*context, *way, *rng.integers(0, model.vocab_size, 1).tolist()]
        if len(context) > 120:
            context = IDS[:7]
        match rng.integers(3):
            case 0:
                last = int(rng.integers(1, 4))
                fresh = model.fork().logits(context, last)
                np.testing.assert_allclose(model.logits(context, last), fresh, atol=1e-4)
            case 1 if taps is not None:
                found, fresh = model.hidden(context, 3, taps), model.fork().hidden(context, 3, taps)
                np.testing.assert_allclose(found, fresh, atol=1e-4)


def test_the_branch_that_is_gone_on_with_is_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny(tmp_path)
    assert isinstance(model, TreeModel)
    model.tree_logits(IDS[:30], [1, 2, 3, 4], [-1, -1, 1, 2])
    fed: list[tuple[int, int]] = []
    feed = type(model)._feed

    def spy(self: object, ids: np.ndarray, start: int, stop: int) -> np.ndarray:
        fed.append((start, stop))
        return feed(self, ids, start, stop)

    monkeypatch.setattr(type(model), "_feed", spy)
    rows = model.logits([*IDS[:30], 2, 3, 4, 9])
    assert fed == [(33, 33)]  # 33 of them are cached, and the row behind the last is asked for
    np.testing.assert_allclose(rows, model.fork().logits([*IDS[:30], 2, 3, 4, 9]), atol=1e-4)


def test_a_branch_longer_than_the_context_is_refused(tmp_path: Path) -> None:
    model = tiny(tmp_path, context_length=32)
    assert isinstance(model, TreeModel)
    tokens, parents = [1, 2, 3, 4], [-1, 0, 1, -1]
    assert model.tree_logits(IDS[:29], tokens, parents).shape[0] == 5
    with pytest.raises(PromptError, match="33 tokens and takes at most 32"):
        model.tree_logits(IDS[:30], tokens, parents)
    with pytest.raises(PromptError, match="the id 9999"):
        model.tree_logits(IDS[:9], [9999], [-1])


@pytest.mark.parametrize("backend", ["numpy", "ort", "numba"])
def test_what_is_no_tree_is_refused_in_words(tmp_path: Path, backend: str) -> None:
    if not can_run(backend):
        pytest.skip(f"{backend} does not run here")
    model = load_gguf(write(tmp_path / "tiny.gguf", Tiny(head_dim=16, n_rope_dims=16)), backend=backend).model
    assert isinstance(model, TreeModel)
    for exact in (True, False):
        if isinstance(model, OnnxTransformer):
            model = model.fork(exact_rows=exact)
        for tokens, parents in (([1, 2], [-1]), ([1, 2], [-1, 1]), ([1], [-2]), ([1, 2], [1, -1]), ([], [-1])):
            with pytest.raises(DraftError, match=r"given \d tokens with the parents \[.*, which is no tree; give"):
                model.tree_logits(IDS[:5], tokens, parents)


@pytest.mark.skipif(not can_run("numba"), reason="numba does not run here")
def test_numba_refuses_a_tree_that_is_too_large_in_words(tmp_path: Path) -> None:
    model = load_gguf(write(tmp_path / "tiny.gguf", Tiny()), backend="numba").model
    assert isinstance(model, TreeModel)
    most = model.tree_logits(IDS[:5], [3] * 32, [-1] * 32)
    assert most.shape[0] == 33
    with pytest.raises(DraftError, match="tiny was given a tree of 33 tokens and takes at most 32; give it fewer"):
        model.tree_logits(IDS[:5], [3] * 33, [-1] * 33)
    np.testing.assert_array_equal(model.tree_logits(IDS[:5], [3] * 32, [-1] * 32), most)


@pytest.mark.parametrize("pair", [load_markov, load_noisy], ids=["markov", "noisy"])
def test_the_embedded_models_give_the_rows_of_plain_calls(pair) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(3)
    loaded = pair()
    for model in (loaded.model, loaded.partner):
        assert isinstance(model, TreeModel)
        for n in (1, 5, 32):
            tokens, parents = random_tree(rng, n, model.vocab_size)
            for context in ([3], [3, 1, 4]):
                rows = model.tree_logits(context, tokens, parents)
                np.testing.assert_array_equal(rows, node_by_node(model, context, tokens, parents))


def test_a_tree_costs_one_call_of_the_simulated_clock() -> None:
    loaded = load_markov(target_call_seconds=0.5)
    assert isinstance(loaded.model, TreeModel)
    loaded.model.tree_logits([3, 1], [4, 5, 6], [-1, -1, 0])
    assert loaded.clock is not None
    assert loaded.clock() == 0.5


class Plain:
    """A model that knows no trees, and counts its calls."""

    name, vocab_size, context_length = "plain", 11, 99

    def __init__(self) -> None:
        self._model = CallableModel(lambda ids: np.random.default_rng(ids).normal(size=11), 11)
        self.calls: list[int] = []

    def logits(self, context: list[int], last: int = 1) -> np.ndarray:
        self.calls.append(last)
        return self._model.logits(context, last)

    def fork(self) -> Plain:
        return Plain()


def test_a_model_without_trees_is_called_once_for_every_branch() -> None:
    rng = np.random.default_rng(4)
    for n in range(1, 14):
        model = Plain()
        tokens, parents = random_tree(rng, n, 11)
        rows = tree_rows(model, [5, 7], tokens, parents)
        np.testing.assert_array_equal(rows, node_by_node(Plain(), [5, 7], tokens, parents))
        assert len(model.calls) == len(set(range(n)) - set(parents))
        assert max(model.calls) <= max(depths(parents)) + 1
    np.testing.assert_array_equal(rows_by_branch(Plain(), [5], [], []), Plain().logits([5]))


@pytest.mark.real_model
def test_rows_of_the_real_model_equal_node_by_node_calls(smollm2) -> None:  # type: ignore[no-untyped-def]
    model = smollm2.model.fork()
    assert isinstance(model, TreeModel)
    rng = np.random.default_rng(6)
    context = smollm2.tokenizer.encode("Speculative decoding drafts several tokens and")
    for n in (3, 12, 32):
        tokens, parents = random_tree(rng, n, 40_000)
        rows = model.tree_logits(context, tokens, parents)
        ways = [[tokens[place] for place in branch(parents, node)] for node in range(-1, n)]
        plain = smollm2.model.fork()
        expected = np.concatenate([plain.logits([*context, *way]) for way in ways])
        assert np.abs(rows - expected).max() < 1e-4
        way = ways[-1]
        after = [*context, *way, 99]
        assert np.abs(model.logits(after) - plain.logits(after)).max() < 1e-4


# ---- numba: every row is that of a plain call, bit for bit ----


@pytest.fixture(params=KINDS)
def exact(request: pytest.FixtureRequest, tmp_path: Path) -> HiddenModel:
    if not can_run("numba"):
        pytest.skip("numba does not run here")
    shape = Tiny(**{**vars(KINDS[request.param]), "context_length": 200})
    model = load_gguf(write(tmp_path / "tiny.gguf", shape), backend="numba").model
    assert isinstance(model, HiddenModel)
    return model


def test_exact_rows_of_a_tree_equal_node_by_node_calls(exact: HiddenModel) -> None:
    """With a context that is cached, with none, and up to the last token that there is room for."""
    rng = np.random.default_rng(5)
    for n, n_context in ((1, 1), (2, 2), (7, 40), (20, 9), (32, 150), (32, 168), (32, 199)):
        context = rng.integers(0, exact.vocab_size, n_context).tolist()
        tokens, parents = random_tree(rng, n, exact.vocab_size)
        if n_context == 199:
            parents = [-1] * n
        expected = node_by_node(exact, context, tokens, parents)
        for model in (exact.fork(), exact.fork()):
            np.testing.assert_array_equal(model.tree_logits(context, tokens, parents), expected)
            model.logits(context)
            np.testing.assert_array_equal(model.tree_logits(context, tokens, parents), expected)


def test_what_follows_an_exact_tree_is_as_from_scratch_bit_for_bit(exact: HiddenModel) -> None:
    rng = np.random.default_rng(2)
    exact.hidden(IDS[:2], 1, (0, 1))
    context = IDS[:30]
    for turn in range(30):
        tokens, parents = random_tree(rng, int(rng.integers(1, 12)), exact.vocab_size)
        exact.tree_logits(context, tokens, parents)
        if turn % 4 == 3:
            early = exact.early_logits([*context, 5], 1, 1)
            np.testing.assert_array_equal(early, exact.fork().early_logits([*context, 5], 1, 1))
        way = [tokens[place] for place in branch(parents, int(rng.integers(-1, len(tokens))))]
        context = [*context, *way, *rng.integers(0, exact.vocab_size, 1).tolist()]
        if len(context) > 120:
            context = IDS[:7]
        found, fresh = exact.hidden(context, 2, (0, 1)), exact.fork().hidden(context, 2, (0, 1))
        np.testing.assert_array_equal(found, fresh)
        np.testing.assert_array_equal(exact.logits(context), exact.fork().logits(context))


def test_the_branch_of_an_exact_tree_is_not_computed_again(exact: HiddenModel) -> None:
    exact.tree_logits(IDS[:30], [1, 2, 3, 4], [-1, -1, 1, 2])
    fed: list[tuple[int, int]] = []
    run = exact._run
    exact._run = lambda piece, start, *more: fed.append((start, len(piece))) or run(piece, start, *more)
    rows = exact.logits([*IDS[:30], 2, 3, 4, 9])
    assert fed == [(33, 1)]
    np.testing.assert_array_equal(rows, exact.fork().logits([*IDS[:30], 2, 3, 4, 9]))


# ---- compiled ----

COMPILED = {
    "llama": Tiny(head_dim=16, n_rope_dims=16, context_length=200),
    "qwen3": Tiny(family="qwen3", head_dim=16, n_rope_dims=16, context_length=200),
}


@pytest.fixture(params=COMPILED)
def compiled(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OnnxTransformer:
    pytest.importorskip("onnxruntime")
    monkeypatch.setenv("DRAFTSCOPE_HOME", str(tmp_path / "home"))
    model = load_gguf(write(tmp_path / "tiny.gguf", COMPILED[request.param]), backend="ort").model
    assert isinstance(model, OnnxTransformer)
    return model


def test_compiled_rows_of_one_pass_equal_node_by_node_calls(compiled: OnnxTransformer) -> None:
    rng = np.random.default_rng(5)
    for n in (1, 2, 7, 20, 31, 32):
        model = compiled.fork(exact_rows=False)
        context = IDS[: int(rng.integers(1, 60))]
        tokens, parents = random_tree(rng, n, model.vocab_size)
        rows = model.tree_logits(context, tokens, parents)
        assert rows.shape == (n + 1, model.vocab_size)
        assert np.abs(rows - node_by_node(model, context, tokens, parents)).max() < 1e-4


@pytest.mark.parametrize("n_context", [1, 2, 3])
def test_compiled_rows_behind_a_short_context_equal_node_by_node_calls(
    compiled: OnnxTransformer, n_context: int
) -> None:
    model, context = compiled.fork(exact_rows=False), IDS[:n_context]
    tokens, parents = [5, 9, 11, 4], [-1, -1, 0, 1]
    rows = model.tree_logits(context, tokens, parents)
    assert np.abs(rows - node_by_node(model, context, tokens, parents)).max() < 1e-4
    after = [*context, 9, 4, 7]
    assert np.abs(model.logits(after) - model.fork().logits(after)).max() < 1e-4


def test_compiled_rows_that_are_to_be_exact_are_those_of_plain_calls(compiled: OnnxTransformer) -> None:
    model = compiled.fork(exact_rows=True)
    tokens, parents = random_tree(np.random.default_rng(8), 12, model.vocab_size)
    rows = model.tree_logits(IDS[:40], tokens, parents)
    np.testing.assert_array_equal(rows, node_by_node(model, IDS[:40], tokens, parents))


def test_what_follows_a_compiled_tree_is_as_from_scratch(compiled: OnnxTransformer) -> None:
    model = compiled.fork(exact_rows=False)
    rng = np.random.default_rng(2)
    model.hidden(IDS[:2], 1, (0, 1))
    context = IDS[:30]
    for turn in range(30):
        tokens, parents = random_tree(rng, int(rng.integers(1, 12)), model.vocab_size)
        model.tree_logits(context, tokens, parents)
        if turn % 4 == 3:
            early = model.early_logits([*context, 5], 1, 1)
            assert np.abs(early - model.fork().early_logits([*context, 5], 1, 1)).max() < 1e-4
        way = [tokens[place] for place in branch(parents, int(rng.integers(-1, len(tokens))))]
        context = [*context, *way, *rng.integers(0, model.vocab_size, 1).tolist()]
        if len(context) > 120:
            context = IDS[:7]
        found, fresh = model.hidden(context, 2, (0, 1)), model.fork().hidden(context, 2, (0, 1))
        assert np.abs(found - fresh).max() < 1e-4
        assert np.abs(model.logits(context) - model.fork().logits(context)).max() < 1e-4


def test_compiled_tree_without_room_behind_the_context_is_run_branch_by_branch(compiled: OnnxTransformer) -> None:
    model = compiled.fork(exact_rows=False)
    context = [*IDS[:195]]
    rows = model.tree_logits(context, [1, 2, 3, 4, 5, 6], [-1] * 6)
    assert np.abs(rows - node_by_node(model, context, [1, 2, 3, 4, 5, 6], [-1] * 6)).max() < 1e-4
