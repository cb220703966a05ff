"""The draft head where it is compiled: the guesses of the one in numpy, always the same, no silent overflow."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from engine.drafters.head_file import read_head
from engine.drafters.screen import Screen
from engine.models.backends import can_run
from engine.models.token_rows import TokenRows
from tests.engine.models.tiny_files import Tiny, write
from tests.engine.tiny_heads import write_head


def graph_head(*parts):
    from engine.drafters.head_compiled import CompiledHead, compile_head

    return CompiledHead(compile_head(*parts), *parts, 700)


def jit_head(*parts):
    from engine.drafters.head_jit import JitHead, pack_head

    return JitHead(pack_head(*parts), *parts, 700)


def of_4_bits(matrix):
    """What a matrix is for numba that is packed in 4 bits."""
    from engine.models.jit.four_bits import nearest_of_4_bits

    blocks = np.pad(matrix, ((0, 0), (0, -matrix.shape[1] % 32))).reshape(len(matrix), -1, 32)
    numbers, scales, minima = nearest_of_4_bits(blocks)
    return (numbers * scales[..., None] + minima[..., None]).reshape(len(matrix), -1)[:, : matrix.shape[1]]


def in_4_bits(weights, *names):
    return dataclasses.replace(weights, **{name: of_4_bits(getattr(weights, name)) for name in names})


COMPILED_HEADS = {"ort": graph_head, "numba": jit_head}


@pytest.mark.parametrize("backend", COMPILED_HEADS)
def test_compiled_head_guesses_as_the_one_in_numpy_does(tmp_path, backend):
    if not can_run(backend):
        pytest.skip(f"{backend} does not run here")
    from engine.drafters.head_network import NumpyHead

    tiny = Tiny(width=64, head_dim=16, n_rope_dims=16)
    path = write(tmp_path / "tiny.gguf", tiny)
    weights = read_head(write_head(tmp_path / "head.npz", path, tiny))
    rows = TokenRows(path, weights.tokens)
    rounded = in_4_bits(weights, "qkv", "output", "gate_up") if backend == "numba" else weights
    plain = NumpyHead(rounded, Screen(weights, rows.head), 700)
    compiled = COMPILED_HEADS[backend](weights, rows.head)
    rng = np.random.default_rng(3)
    features = rng.normal(1, 1, (600, 2, 64)).astype(np.float32)
    embeddings = rows.embedding(rng.integers(0, rows.vocab_size, 602))
    for start, stop in (
        (0, 5),
        (5, 6),
        (6, 10),
        (9, 300),
        (300, 600),
        (50, 51),
    ):  # behind, back, and past the first room
        guesses = [head.read(start, features[start:stop], embeddings[start:stop]) for head in (plain, compiled)]
        for depth in range(3):
            one, other = guesses
            assert one.tokens.tolist() == other.tokens.tolist()
            spread = one.logits.std()
            np.testing.assert_allclose(one.logits, other.logits, atol=0.12 * spread)  # activations rounded to 8 bits
            state = one.state
            guesses = [head.go_on(stop + depth, state, embeddings[600 + depth % 2]) for head in (plain, compiled)]


def test_jit_head_of_more_tokens_than_candidates_hands_on_those_of_the_highest_rough_scores(tmp_path, monkeypatch):
    if not can_run("numba"):
        pytest.skip("numba does not run here")
    from engine.drafters import head_jit

    tiny = Tiny(width=64, head_dim=16, n_rope_dims=16)
    path = write(tmp_path / "tiny.gguf", tiny)
    weights = read_head(write_head(tmp_path / "head.npz", path, tiny))
    rows = TokenRows(path, weights.tokens)
    features = np.random.default_rng(3).normal(1, 1, (5, 2, 64)).astype(np.float32)
    embeddings = rows.embedding(np.arange(5))
    whole = jit_head(weights, rows.head).read(0, features, embeddings)
    assert whole.tokens.tolist() == weights.tokens.tolist()
    exact = {int(token): logit for token, logit in zip(whole.tokens, whole.logits, strict=True)}
    scores = weights.screen_down @ (whole.state * weights.output_scale + weights.output_bias)
    rough = dict(zip(weights.tokens.tolist(), of_4_bits(rows.head @ weights.screen_up) @ scores, strict=True))
    monkeypatch.setattr(head_jit, "N_CANDIDATES", 10)
    few = jit_head(weights, rows.head).read(0, features, embeddings)
    assert 10 <= len(few.tokens) < len(weights.tokens) / 2
    assert [exact[int(token)] for token in few.tokens] == few.logits.tolist()
    left_out = [score for token, score in rough.items() if token not in few.tokens]
    assert min(rough[int(token)] for token in few.tokens) > max(left_out) - 0.05 * np.std(list(rough.values()))


def jit_parts(tmp_path, **changed):
    """A JitHead's weights and head rows, and 600 features and embeddings."""
    tiny = Tiny(width=64, head_dim=16, n_rope_dims=16)
    path = write(tmp_path / "tiny.gguf", tiny)
    weights = read_head(write_head(tmp_path / "head.npz", path, tiny, **changed))
    rows = TokenRows(path, weights.tokens)
    rng = np.random.default_rng(3)
    features = rng.normal(1, 1, (600, 2, 64)).astype(np.float32)
    return weights, rows.head, features, rows.embedding(rng.integers(0, rows.vocab_size, 600))


@pytest.mark.skipif(not can_run("numba"), reason="numba does not run here")
def test_jit_head_guesses_the_same_whatever_it_did_before_and_with_any_number_of_threads(tmp_path):
    from engine.drafters.head_jit import JitHead, pack_head

    weights, head, features, embeddings = jit_parts(tmp_path)
    packed = pack_head(weights, head)

    def guesses(network, pieces):
        """What follows the first 290 places, which are read in these pieces, and three tokens behind them."""
        for start, stop in pieces:
            guess = network.read(start, features[start:stop], embeddings[start:stop])
        found = [guess]
        for place in (290, 291, 292):
            found.append(network.go_on(place, found[-1].state, embeddings[place]))
        return [(guess.tokens.tolist(), guess.logits.tolist(), guess.state.tolist()) for guess in found]

    expected = guesses(JitHead(packed, weights, head, 700, n_threads=1), [(0, 290)])
    assert len({str(state) for *_, state in expected}) == 4
    for n_threads in (1, 2, 5):
        network = JitHead(packed, weights, head, 700, n_threads=n_threads)
        assert guesses(network, [(0, 2), (2, 3), (3, 250), (250, 289), (289, 290)]) == expected  # past the first room
        assert guesses(network, [(0, 1), (1, 600), (100, 290)]) == expected  # back from further on
        assert guesses(network, [(288, 290)]) == expected


@pytest.mark.skipif(not can_run("numba"), reason="numba does not run here")
def test_what_a_jit_head_has_handed_over_stays_as_it_is(tmp_path):
    weights, head, features, embeddings = jit_parts(tmp_path)
    network = jit_head(weights, head)
    first = network.read(0, features[:5], embeddings[:5])
    kept = [array.copy() for array in (first.tokens, first.logits, first.state)]
    network.go_on(5, first.state, embeddings[5])
    network.read(0, features[300:302], embeddings[300:302])
    for array, copy in zip((first.tokens, first.logits, first.state), kept, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.skipif(not can_run("numba"), reason="numba does not run here")
@pytest.mark.parametrize("name", ["feature_scale", "attention_norm", "ffn_norm", "output_scale"])
def test_a_jit_head_that_overflows_says_so_in_its_logits(tmp_path, name):
    weights, head, features, embeddings = jit_parts(tmp_path)
    too_large = dataclasses.replace(weights, **{name: np.full_like(getattr(weights, name), 3e38)})
    with np.errstate(all="ignore"):
        guess = jit_head(too_large, head).read(0, features[:3], embeddings[:3])
    assert guess.tokens.tolist() == weights.tokens.tolist()
    assert not np.isfinite(guess.logits).any()
