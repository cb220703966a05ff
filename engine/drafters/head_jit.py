"""A draft head that numba runs; the counterpart of `NumpyHead` for a target that numba runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.drafters.head_file import HeadWeights
from engine.drafters.head_network import Guess
from engine.drafters.screen import N_CANDIDATES
from engine.models.attention import Cache
from engine.models.jit.attention import MORE_SLOTS
from engine.models.jit.candidates import Candidates
from engine.models.jit.dot_products import GROUP
from engine.models.jit.head_program import Network, head_stages
from engine.models.jit.memory import Memory, room_of_head
from engine.models.jit.packed import pack_matrix
from engine.models.jit.passes import pass_numbers, run_numbers
from engine.models.jit.product import Matrix
from engine.models.jit.slots import one_after_the_other
from engine.models.jit.stages import Shape, address, n_together
from engine.models.jit.team import team_of
from engine.models.jit.work import place_of
from engine.models.rope import Rope, frequencies, turns
from engine.models.threads import n_session_threads

__all__ = ["JitHead", "PackedHead", "pack_head"]

Array = NDArray[np.float32]

OF_4_BITS = {"qkv", "output", "gate_up", "rough"}  # the others tell fewer tokens right with 4, or are small
MOST_KEPT = 8  # rows of a pass that is kept for the next of its size: tokens that a target has just accepted
PARTS_PER_THREAD = 3  # of a product
START, N_SLOTS, COSINES, SINES = (place_of(field) for field in ("start", "n_slots", "cosines", "sines"))
N_FOUND = Candidates._fields.index("n_found")


@dataclass(frozen=True, slots=True, eq=False)
class PackedHead:
    """A head in memory; several runs may share it.

    Attributes
    ----------
    network : Network
    first, further : Matrix
        Make the layer's input, at depth 0 and at the depths behind it: of the features and the token's embedding, or
        of the head's own output and the embedding, side by side. The embedding's scale is in them.
    """

    network: Network
    first: Matrix
    further: Matrix


def pack_head(weights: HeadWeights, head: Array) -> PackedHead:
    """Pack a head; `head` (V, W) are the target's head rows of `weights.tokens`."""
    packed = {
        name: pack_matrix(matrix, 4 if name in OF_4_BITS else 8)
        for name, matrix in (
            ("qkv", weights.qkv),
            ("output", weights.output),
            ("gate_up", weights.gate_up),
            ("down", weights.down),
            ("screen_down", weights.screen_down),
            ("rough", head @ weights.screen_up),
        )
    }
    shape = Shape(
        weights.n_heads,
        weights.n_kv_heads,
        weights.head_dim,
        weights.down.shape[1],
        np.float32(weights.norm_epsilon),
    )
    network = Network(
        shape,
        **packed,
        attention_norm=weights.attention_norm,
        ffn_norm=weights.ffn_norm,
        output_scale=weights.output_scale,
        output_bias=weights.output_bias,
    )
    first = pack_matrix(np.concatenate([weights.feature, weights.feature_token * weights.token_scale], axis=1))
    further = pack_matrix(np.concatenate([weights.state, weights.token * weights.token_scale], axis=1))
    return PackedHead(network, first, further)


class JitHead:
    """One context of a packed head; see `HeadNetwork` for what it promises.

    Whatever does not change from token to token is made once, since behind a pass of the target nothing of it is in
    the processor's caches: a call copies the inputs, says where they belong, and runs a pass.

    Parameters
    ----------
    packed : PackedHead
    weights : HeadWeights
    head : array, shape (V, W)
        The target's head rows of `weights.tokens`.
    limit : int
        Tokens that its cache may ever hold.
    n_threads : int, optional
        As many as `engine.models.threads.n_session_threads` says, if not given.
    """

    def __init__(
        self, packed: PackedHead, weights: HeadWeights, head: Array, limit: int, *, n_threads: int | None = None
    ) -> None:
        self._packed = packed
        self._weights = weights
        self._head = np.ascontiguousarray(head)
        self._n_threads = n_threads or n_session_threads("numba")
        self._team = team_of(self._n_threads)
        self._rope = frequencies(Rope(weights.rope_base, weights.head_dim, interleaved=False))
        self._cache = Cache(1, weights.n_kv_heads, room_of_head(weights.head_dim), limit)
        self._rough = np.empty(packed.network.rough.blocks.shape[1] * GROUP, np.float32)
        self._tokens, self._places, self._found = weights.tokens.astype(np.int64), *np.empty((2, len(head)), np.int64)
        self._logits = np.empty(len(head), np.float32)
        choice = Candidates(
            n_found=0,
            n_tokens=len(head),
            n_wanted=N_CANDIDATES,
            tokens=address(self._tokens),
            rows=address(self._head),
            places=address(self._places),
            found=address(self._found),
            logits=address(self._logits),
        )
        self._choice = np.array(choice, np.int64)
        self._memory = self._memory_for(1)
        self._passes: dict[tuple[bool, int], _Pass] = {}
        self._make_room()

    def read(self, start: int, features: Array, embeddings: Array) -> Guess:
        """See `HeadNetwork.read`."""
        weights, ready = self._weights, self._pass(True, start, len(features))
        np.subtract(features, weights.feature_mean, out=ready.given)
        np.multiply(ready.given, weights.feature_scale, out=ready.given)
        ready.embeddings[:] = embeddings
        return self._run(ready, start)

    def go_on(self, place: int, state: Array, embedding: Array) -> Guess:
        """See `HeadNetwork.go_on`."""
        ready = self._pass(False, place, 1)
        ready.given[0, 0] = state
        ready.embeddings[0] = embedding
        return self._run(ready, place)

    def _run(self, ready: _Pass, start: int) -> Guess:
        numbers = ready.numbers.copy()
        numbers[START] = start
        numbers[N_SLOTS] = self._first_n_slots + 8 * start
        numbers[COSINES] = self._first_cosines + start * self._turn_bytes
        numbers[SINES] = self._first_sines + start * self._turn_bytes
        run_numbers(self._team, ready.stages, numbers)
        n_found = self._choice[N_FOUND]
        return Guess(ready.state.copy(), self._found[:n_found].copy(), self._logits[:n_found].copy())

    def _pass(self, first: bool, start: int, n_rows: int) -> _Pass:
        """A pass of some rows, ready to run; memory and cache have room for it."""
        if start + n_rows > self._n_room:
            self._cache.reserve(start + n_rows)
            self._make_room()
        if n_rows > self._memory.n_rows:
            self._passes.clear()
            self._memory = self._memory_for(n_rows)
        ready = self._passes.get((first, n_rows))
        if ready is None:
            ready = self._new_pass(first, n_rows)
            if n_rows <= MOST_KEPT:
                self._passes[first, n_rows] = ready
        return ready

    def _make_room(self) -> None:
        """What goes with the room of the cache."""
        self._passes.clear()
        self._n_room = n_room = self._cache.keys.shape[2]
        self._slots, self._n_slots = one_after_the_other(0, n_room)
        self._turns = tuple(np.ascontiguousarray(table[:, 0]) for table in turns(self._rope, 0, n_room))
        self._turn_bytes = self._turns[0].strides[0]
        self._first_n_slots = address(self._n_slots)
        self._first_cosines, self._first_sines = map(address, self._turns)
        n_scores = n_together(self._packed.network.shape), n_room + MORE_SLOTS
        self._scores = np.empty((self._n_threads, *n_scores), np.float32)

    def _memory_for(self, n_rows: int) -> Memory:
        packed, network = self._packed, self._packed.network
        matrices = [packed.first, packed.further, network.qkv, network.output, network.gate_up, network.down]
        matrices += [network.screen_down]
        return Memory(n_rows, len(network.output_bias), network.shape, matrices)

    def _new_pass(self, first: bool, n_rows: int) -> _Pass:
        network, cache, memory, width = self._packed.network, self._cache, self._memory, self._weights.width
        entry = self._packed.first if first else self._packed.further
        n_parts = PARTS_PER_THREAD * self._n_threads
        rank = len(self._weights.screen_down)
        stages = head_stages(network, entry, n_rows, rank, n_parts, address(self._choice))
        depth = 1 + len(self._weights.taps) if first else 1
        inputs = np.empty((n_rows, (depth + 1) * width), np.float32)
        numbers = pass_numbers(
            stages,
            memory,
            start=0,
            slots=address(self._slots),
            row_slots=0,
            n_slots=self._first_n_slots,
            cosines=self._first_cosines,
            sines=self._first_sines,
            n_turned=self._turns[0].shape[1],
            keys=address(cache.keys),
            values=address(cache.values),
            n_room=self._n_room,
            inputs=address(inputs),
            n_inputs=inputs.shape[1],
            n_rows=n_rows,
            results=address(self._rough),
            row_results=len(self._rough),
            scores=address(self._scores),
            n_scores=self._scores[0].size,
            row_scores=self._scores.shape[2],
        )
        given = inputs[:, : depth * width].reshape(n_rows, depth, width)  # parts of `inputs`, no copies
        state = memory.hidden[n_rows - 1]
        return _Pass(stages, numbers, given, inputs[:, depth * width :], state)


@dataclass(frozen=True, slots=True, eq=False)
class _Pass:
    """A pass of some rows, ready but for what changes from call to call.

    Attributes
    ----------
    stages, numbers : array of int
        See `passes`; the numbers are those of start 0.
    given, embeddings : array, shape (rows, features, W) and (rows, W)
        The two parts of the inputs.
    state : array, shape (W,)
        The head's output, behind the pass.
    """

    stages: NDArray[np.int64]
    numbers: NDArray[np.int64]
    given: Array
    embeddings: Array
    state: Array
