"""The draft head as drafter: what it draws from, its cache, its limits, and that it never changes a text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.decode import decode
from engine.drafters import LookupFirst, NoDraft
from engine.drafters.eagle import EagleDrafter
from engine.drafters.head_file import read_head
from engine.drafters.screen import Screen
from engine.errors import SettingError
from engine.heads import eagle
from engine.lengths import FixedLength
from engine.models.base import LoadedModel, Model
from engine.models.callable import CallableModel
from engine.models.gguf_loader import load_gguf
from engine.models.token_rows import TokenRows
from engine.sampling import Noise, Sampling, Sparse
from engine.values import Finished, Step
from tests.engine.models.tiny_files import Tiny, write
from tests.engine.oracle import slow_law
from tests.engine.tiny_heads import write_head

TINY = Tiny()
GREEDY = {"sampling": Sampling(temperature=0), "noise": Noise(0), "end_tokens": frozenset()}
PROMPT = [5, 90, 33, 90, 12, 7, 200, 41]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tiny")
    target = write(folder / "tiny.gguf", TINY)
    return target, write_head(folder / "head.npz", target, TINY)


@pytest.fixture
def target(files: tuple[Path, Path]) -> Model:
    return load_gguf(files[0]).model


def drafter_on(files: tuple[Path, Path], target: Model) -> EagleDrafter:
    return eagle(str(files[0]), target, str(files[1]))


def by_hand(files: tuple[Path, Path], target: Model, context: list[int], drafted: list[int]) -> np.ndarray:
    """The guessed hidden row behind `context` and `drafted`, from the formulas, all places at once."""
    head = read_head(files[1])
    rows = TokenRows(files[0], head.tokens)

    def norm(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + head.norm_epsilon) * weight

    def turned(x: np.ndarray, place: int) -> np.ndarray:
        half = x.shape[-1] // 2
        angle = place * head.rope_base ** (-np.arange(half) / half)
        left, right = x[..., :half], x[..., half:]
        turned_left = left * np.cos(angle) - right * np.sin(angle)
        return np.concatenate([turned_left, left * np.sin(angle) + right * np.cos(angle)], -1)

    n = len(context) - 1
    features = (target.hidden(context[:-1], n, head.taps) - head.feature_mean) * head.feature_scale
    scaled = rows.embedding(np.array(context[1:] + drafted)) * head.token_scale
    keys, values, state = [], [], np.empty(0)
    for place in range(n + len(drafted)):
        if place < n:
            x = head.feature @ features[place].ravel() + head.feature_token @ scaled[place]
        else:
            x = head.state @ state + head.token @ scaled[place]
        qkv = (head.qkv @ norm(x, head.attention_norm)).reshape(-1, head.head_dim)
        query = turned(qkv[: head.n_heads], place)
        keys.append(turned(qkv[head.n_heads : head.n_heads + head.n_kv_heads], place))
        values.append(qkv[head.n_heads + head.n_kv_heads :])
        group = head.n_heads // head.n_kv_heads
        mixed = []
        for index, row in enumerate(query):
            scores = np.array([row @ key[index // group] for key in keys]) / np.sqrt(head.head_dim)
            weights = np.exp(scores - scores.max())
            mixed.append(
                sum(w * value[index // group] for w, value in zip(weights / weights.sum(), values, strict=True))
            )
        hidden = x + head.output @ np.concatenate(mixed)
        gate, up = np.split(head.gate_up @ norm(hidden, head.ffn_norm), 2)
        state = hidden + head.down @ (gate / (1 + np.exp(-gate)) * up)
    return state * head.output_scale + head.output_bias


def test_every_guess_equals_the_formulas(files, target):
    drafter = drafter_on(files, target)
    head = read_head(files[1])
    rows = TokenRows(files[0], head.tokens)
    ask = {"sampling": Sampling(temperature=1), "noise": Noise(4), "end_tokens": frozenset()}
    draft = drafter.propose(PROMPT, 4, **ask)
    assert len(draft.tokens) == 4
    for depth, law in enumerate(draft.laws):
        logits = rows.head @ by_hand(files, target, PROMPT, list(draft.tokens[:depth]))
        probs = np.exp(logits - logits.max())
        assert isinstance(law, Sparse)
        assert law.tokens.tolist() == head.tokens.tolist()  # fewer than the screen keeps, so all of them
        np.testing.assert_allclose(law.probs, probs / probs.sum(), rtol=1e-3, atol=1e-6)
        assert draft.logits[depth] == pytest.approx(logits[head.tokens.tolist().index(draft.tokens[depth])], rel=1e-4)


def test_penalties_act_on_the_candidates_at_every_depth(files, target):
    head = read_head(files[1])
    rows = TokenRows(files[0], head.tokens)
    tokens = head.tokens.tolist()
    context = [*PROMPT, tokens[1], tokens[1], tokens[2]]
    settings = {"repetition_penalty": 1.7, "frequency_penalty": 0.9, "presence_penalty": 0.4}
    sampling = Sampling(temperature=1, **settings, prompt_length=len(PROMPT))
    draft = drafter_on(files, target).propose(context, 4, sampling=sampling, noise=Noise(4), end_tokens=frozenset())
    assert len(draft.tokens) == 4
    for depth, law in enumerate(draft.laws):
        logits = np.full(target.vocab_size, -np.inf)
        logits[head.tokens] = rows.head @ by_hand(files, target, context, list(draft.tokens[:depth]))
        ids = [*context, *draft.tokens[:depth]]
        expected = slow_law(logits, **settings, prompt_length=len(PROMPT), context=ids)
        np.testing.assert_allclose(law.dense(target.vocab_size), expected, rtol=1e-3, atol=1e-6)
        place = tokens.index(draft.tokens[depth])
        assert draft.logits[depth] == pytest.approx(logits[head.tokens][place], rel=1e-4)  # raw, for rules that ask


@pytest.mark.parametrize("ngram", [False, True])
@pytest.mark.parametrize(
    "penalties", [{"repetition_penalty": 1.3}, {"frequency_penalty": 1.0, "presence_penalty": 0.5}]
)
def test_greedy_text_with_penalties_equals_plain_text(files, penalties, ngram):
    def ids(make, length):
        model = load_gguf(files[0]).model
        sampling = Sampling(temperature=0, **penalties)
        settings = {"sampling": sampling, "lengths": FixedLength(length), "max_tokens": 60}
        *_, finished = decode(model, make(model), PROMPT * 2, **settings)
        assert not finished.error
        return finished.ids

    def drafting(model):
        head = drafter_on(files, model)
        return LookupFirst(head) if ngram else head

    plain = ids(lambda model: NoDraft(), 0)
    for length in (1, 3, 8):
        assert ids(drafting, length) == plain


@pytest.mark.parametrize("sampling", [Sampling(temperature=1), Sampling(temperature=0.6, top_k=12, top_p=0.9)])
def test_tokens_are_drawn_from_the_law_that_is_handed_over(files, target, sampling):
    """Chi-square over 4,000 seeds: the first token's counts against the law that came with it; p > 0.001."""
    drafter = drafter_on(files, target)
    drafts = [
        drafter.propose(PROMPT, 1, sampling=sampling, noise=Noise(seed), end_tokens=frozenset()) for seed in range(4000)
    ]
    law = drafts[0].laws[0]
    counts = np.bincount([draft.tokens[0] for draft in drafts], minlength=target.vocab_size)
    expected = len(drafts) * law.dense(target.vocab_size)
    assert counts[expected == 0].sum() == 0
    often = expected >= 5
    statistic = ((counts - expected)[often] ** 2 / expected[often]).sum()
    rest = expected[~often].sum()
    n_free = int(often.sum()) - 1
    if rest >= 5:
        statistic += (counts[~often].sum() - rest) ** 2 / rest
        n_free += 1
    assert statistic < n_free * (1 - 2 / (9 * n_free) + 3.09 * np.sqrt(2 / (9 * n_free))) ** 3  # Wilson and Hilferty


@pytest.mark.parametrize("n_accepted", range(5))
def test_cached_chain_equals_one_from_scratch_after_every_accepted_length(files, n_accepted):
    target = load_gguf(files[0]).model
    drafter = drafter_on(files, target)
    drafter.prepare(PROMPT)
    draft = drafter.propose(PROMPT, 4, **GREEDY)
    target.logits([*PROMPT, *draft.tokens], 5)  # verified
    context = [*PROMPT, *draft.tokens[:n_accepted], 77]
    ask = {"sampling": Sampling(temperature=1), "noise": Noise(1), "end_tokens": frozenset()}
    cached = drafter.propose(context, 4, **ask)
    fresh = drafter_on(files, load_gguf(files[0]).model).propose(context, 4, **ask)
    assert cached.tokens == fresh.tokens
    for one, other in zip(cached.laws, fresh.laws, strict=True):
        np.testing.assert_allclose(one.dense(300), other.dense(300), rtol=1e-3, atol=1e-7)
    again = drafter.propose(context, 4, **ask)
    assert again.tokens == cached.tokens
    shorter = drafter.propose(PROMPT[:4], 3, **GREEDY)  # another text that shares its beginning
    assert shorter.tokens == drafter_on(files, load_gguf(files[0]).model).propose(PROMPT[:4], 3, **GREEDY).tokens


def test_long_prompts_are_read_in_pieces(files, target, monkeypatch):
    whole = drafter_on(files, target).propose(PROMPT, 3, **GREEDY)
    monkeypatch.setattr("engine.drafters.eagle.CHUNK", 3)
    assert drafter_on(files, target).propose(PROMPT, 3, **GREEDY).tokens == whole.tokens


@pytest.mark.parametrize("draft_length", [1, 2, 5])
def test_greedy_text_equals_plain_text(files, draft_length):
    def ids(drafter_for, lengths):
        model = load_gguf(files[0]).model
        *_, finished = decode(
            model, drafter_for(model), PROMPT, lengths=lengths, sampling=Sampling(temperature=0), max_tokens=40
        )
        assert finished.error == ""
        return finished.ids

    plain = ids(lambda model: NoDraft(), FixedLength(0))
    assert ids(lambda model: drafter_on(files, model), FixedLength(draft_length)) == plain


def test_run_goes_to_the_end_of_the_context(files, target):
    *events, finished = decode(target, drafter_on(files, target), PROMPT, max_tokens=500, sampling=Sampling())
    assert isinstance(finished, Finished)
    assert finished.reason == "context"
    assert finished.error == ""
    assert len(PROMPT) + len(finished.ids) == target.context_length
    assert any(event.n_drafted for event in events if isinstance(event, Step))


def test_single_token_has_nothing_to_read(files, target):
    drafter = drafter_on(files, target)
    drafter.prepare([5])
    draft = drafter.propose([5], 3, **GREEDY)
    assert draft.tokens == ()
    assert "has read" in draft.note


def test_nothing_is_proposed_behind_an_end_token(files, target):
    drafter = drafter_on(files, target)
    first = drafter.propose(PROMPT, 1, **GREEDY).tokens[0]
    assert drafter.propose(PROMPT, 4, **GREEDY | {"end_tokens": frozenset({first})}).tokens == (first,)


def test_screen_finds_the_best_tokens(files):
    """With a map of full rank the rough score is exact, so the candidates are the best ones."""
    head = read_head(files[1])
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(len(head.tokens), head.width)).astype(np.float32)
    full = type(head)(**{name: getattr(head, name) for name in head.__slots__} | {
        "screen_down": np.eye(head.width, dtype=np.float32), "screen_up": np.eye(head.width, dtype=np.float32),
    })  # fmt: skip
    hidden = rng.normal(size=head.width).astype(np.float32)
    tokens, logits = Screen(full, rows, 7).logits(hidden)
    best = np.sort(np.argsort(-(rows @ hidden))[:7])
    assert tokens.tolist() == head.tokens[best].tolist()
    np.testing.assert_allclose(logits, rows[best] @ hidden, rtol=1e-5)


def test_target_without_hidden_rows_is_refused(files):
    head = read_head(files[1])
    blind = CallableModel(lambda ids: np.zeros(5), vocab_size=5)
    with pytest.raises(SettingError, match="does not show its hidden rows"):
        EagleDrafter(blind, head, TokenRows(files[0], head.tokens), network=None)


def test_target_of_another_shape_is_refused(files, tmp_path):
    head = read_head(files[1])
    rows = TokenRows(files[0], head.tokens)
    wider = load_gguf(write(tmp_path / "wider.gguf", Tiny(width=48))).model
    with pytest.raises(SettingError, match="24 numbers"):
        EagleDrafter(wider, head, rows, network=None)


@pytest.mark.real_model
@pytest.mark.parametrize("name", ["eagle", "eagle+ngram"])
@pytest.mark.parametrize(("penalty", "least"), [(1.0, 0.25), (1.15, 0.1)])
def test_real_text_equals_plain_text(
    smollm2: LoadedModel, smollm2_path: Path, name: str, penalty: float, least: float
) -> None:
    from engine.heads import eagle_and_lookup

    prompt = smollm2.tokenizer.chat("Repeat this list three times: apples, pears, plums.")

    def run(drafter_for, length):
        model = smollm2.model.fork()
        *events, finished = decode(
            model, drafter_for(model), prompt, lengths=FixedLength(length), max_tokens=48,
            sampling=Sampling(temperature=0, repetition_penalty=penalty), end_tokens=smollm2.tokenizer.end_tokens,
        )  # fmt: skip
        assert finished.error == ""
        steps = [event for event in events if isinstance(event, Step)]
        return finished.ids, sum(step.n_accepted for step in steps), len(steps)

    made = {"eagle": eagle, "eagle+ngram": eagle_and_lookup}[name]
    plain, _, _ = run(lambda model: NoDraft(), 0)
    ids, n_accepted, n_steps = run(lambda model: made(str(smollm2_path), model), 4)
    assert ids == plain
    assert n_accepted > least * n_steps  # the head was trained, without penalties: guesses are kept in so many steps
