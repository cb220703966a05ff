"""A draft with another tokenizer: which tokens are shared, how the context is carried over, and that it stays exact."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from engine.acceptance import ExactRejection
from engine.build import build
from engine.decode import decode
from engine.drafters import ModelDrafter, NoDraft
from engine.errors import PromptError, VocabularyError
from engine.lengths import FixedLength
from engine.models.base import LoadedModel
from engine.models.callable import CallableModel
from engine.models.gguf_loader import load_gguf
from engine.models.shared_vocabulary import SharedVocabulary, shared_tokens
from engine.sampling import Noise, Sampling, law
from engine.spec import RunSpec
from engine.values import Finished, Step
from tests.engine.models.tiny_files import LETTERS, MERGES, Tiny, write
from tests.engine.oracle import output_law, plain_law, slow_law, total_variation
from tests.engine.toys import Pieces, random_model

OTHER_MERGES = ["h e", "l o", "he l", "Ġ w", "Ġw a", "1 2", "2 3", "a b", "Ġ Ġ", "a a"]
CONTROLS = ["<|turn|>", "<|stop|>", "<|end|>", "<|x|>", "<|y|>"]
OTHER_TOKENS = [*CONTROLS, *(merge.replace(" ", "") for merge in OTHER_MERGES), *reversed(LETTERS)]
OTHER = {
    "tokenizer.ggml.tokens": OTHER_TOKENS,
    "tokenizer.ggml.token_type": [3] * 5 + [1] * (len(OTHER_MERGES) + 256),
    "tokenizer.ggml.merges": OTHER_MERGES,
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 2,
}


class Spelling(Pieces):
    """Pieces that encode text greedily, the longest first."""

    def encode(self, text: str) -> list[int]:
        ids, left = [], text.encode()
        while left:
            fitting = [token for token in range(self.vocab_size) if left.startswith(self.token_bytes(token))]
            if not fitting:
                raise PromptError("cannot be spelled")
            ids.append(max(fitting, key=lambda token: len(self.token_bytes(token))))
            left = left[len(self.token_bytes(ids[-1])) :]
        return ids


@pytest.fixture
def target(tmp_path: Path) -> LoadedModel:
    return load_gguf(write(tmp_path / "target.gguf", Tiny(context_length=64)))


@pytest.fixture
def draft(tmp_path: Path) -> LoadedModel:
    return load_gguf(write(tmp_path / "draft.gguf", Tiny(n_layers=1, context_length=64, fields=OTHER)))


@pytest.fixture
def shared(target: LoadedModel, draft: LoadedModel) -> SharedVocabulary:
    return SharedVocabulary(draft.model, draft.tokenizer, target.tokenizer)


def test_a_token_is_shared_if_its_bytes_and_its_kind_are_the_same(target: LoadedModel, draft: LoadedModel) -> None:
    ours, theirs = shared_tokens(target.tokenizer, draft.tokenizer)
    pairs = {
        (target.tokenizer.token_bytes(one), target.tokenizer.is_control(one))
        for one in range(target.tokenizer.vocab_size)
    } & {(draft.tokenizer.token_bytes(one), draft.tokenizer.is_control(one)) for one in range(len(OTHER_TOKENS))}
    assert len(ours) == len(pairs)
    for one, other in zip(ours, theirs, strict=True):
        assert target.tokenizer.token_bytes(one) == draft.tokenizer.token_bytes(other)
        assert target.tokenizer.is_control(one) == draft.tokenizer.is_control(other)
    both = {merge.replace(" ", "") for merge in set(MERGES) & set(OTHER_MERGES)}
    assert len(ours) == 256 + len(both) + 2  # <|turn|> and <|end|>


def test_the_word_for_a_control_token_is_not_the_control_token() -> None:
    ours, _ = shared_tokens(Pieces([b"<s>", b"a"], control={0}), Pieces([b"a", b"<s>"]))
    assert ours.tolist() == [1]


def test_padding_and_twins_are_shared_once() -> None:
    ours, theirs = shared_tokens(Pieces([b"a", b"", b"a"]), Pieces([b"", b"a", b"a"]))
    assert (ours.tolist(), theirs.tolist()) == ([0], [1])


def test_a_row_is_the_drafts_over_what_both_have_and_nothing_elsewhere(
    shared: SharedVocabulary, target: LoadedModel, draft: LoadedModel
) -> None:
    context = target.tokenizer.encode("hello wa 123")
    (row,) = shared.logits(context)
    ours, theirs = shared_tokens(target.tokenizer, draft.tokenizer)
    expected = draft.model.fork().logits(draft.tokenizer.encode("hello wa 123"))[0]
    assert np.allclose(row[ours], expected[theirs], atol=1e-5)
    assert np.isneginf(np.delete(row, ours)).all()
    probs = np.exp(expected[theirs].astype(float))
    handed = law(row, Sampling(temperature=1)).dense(shared.vocab_size)
    assert np.allclose(handed[ours], probs / probs.sum(), atol=1e-6)  # the law of the draft, renormalised


@pytest.mark.parametrize(
    "text", ["hello world", "a  b\n\nhello 1231", "aab wa hel lo", "naïve 日本 🙂 ok", " ", "\n hello\n"]
)
def test_text_is_carried_over_as_text(
    text: str, shared: SharedVocabulary, target: LoadedModel, draft: LoadedModel
) -> None:
    ids = shared.translate(target.tokenizer.encode(text))
    assert b"".join(map(draft.tokenizer.token_bytes, ids)) == text.encode()
    if text == "hello world":
        assert ids == draft.tokenizer.encode(text)


def test_half_a_character_is_carried_over_byte_by_byte(
    shared: SharedVocabulary, target: LoadedModel, draft: LoadedModel
) -> None:
    ids = target.tokenizer.encode("hello 🙂")
    for end in range(1, len(ids) + 1):
        translated = shared.translate(ids[:end])
        before = b"".join(map(target.tokenizer.token_bytes, ids[:end]))
        assert b"".join(map(draft.tokenizer.token_bytes, translated)) == before


def test_control_tokens_are_carried_over_where_both_have_them(
    shared: SharedVocabulary, target: LoadedModel, draft: LoadedModel
) -> None:
    translated = shared.translate(target.tokenizer.chat("hello"))
    names = [draft.tokenizer.token_bytes(token) for token in translated if draft.tokenizer.is_control(token)]
    assert names == [b"<|turn|>", b"<|end|>", b"<|turn|>"]
    begin = next(token for token in range(271) if target.tokenizer.token_bytes(token) == b"<|begin|>")
    assert shared.translate([begin]) == [2]  # nothing is left: the draft begins from its end token


def test_the_same_context_gives_the_same_rows_whatever_was_asked_before(
    shared: SharedVocabulary, target: LoadedModel
) -> None:
    rng = np.random.default_rng(0)
    pieces = target.tokenizer.encode("hello world 12 aa\n\n🙂 he") + target.tokenizer.chat("a")[:1]
    context: list[int] = []
    for _ in range(60):
        context = context[: rng.integers(0, len(context) + 1)]
        context = [*context, *rng.choice(pieces, rng.integers(1, 5)).tolist()][:50]
        assert shared.translate(context) == shared.fork().translate(context)
    last = shared.logits(context, last=4)
    for place in range(4):
        assert np.allclose(last[place], shared.fork().logits(context[: len(context) - 3 + place])[0], atol=1e-5)


def test_a_context_beyond_the_drafts_room_is_cut_in_front(shared: SharedVocabulary, target: LoadedModel) -> None:
    context = target.tokenizer.encode("hello world aa 12 " * 20)
    assert len(shared.translate(context)) > 64
    assert np.isfinite(shared.logits(context).max())


def test_a_draft_that_cannot_spell_a_word_goes_on_without_it() -> None:
    target, draft = Spelling(["a", "b", "é", " a"]), Spelling(["a", " ", "b"])
    shared = SharedVocabulary(random_model(0, 3), draft, target)
    assert shared.translate([0, 2, 3, 1]) == [0, 1, 0, 2]


def test_too_small_an_intersection_is_refused() -> None:
    target, draft = Pieces([bytes([n]) for n in range(100)]), Pieces([bytes([n]) for n in range(96, 196)])
    with pytest.raises(VocabularyError, match="only 4 are the same; at least 5% of the smaller"):
        SharedVocabulary(random_model(0, 100), draft, target)


OURS, THEIRS = Spelling(["a", "b", "ab", " a"]), Spelling([" ", "b", "ab", "a", "bb"])


@pytest.mark.parametrize("sampling", [Sampling(temperature=1), Sampling(0.6, 2), Sampling(1.3, 0, 0.8)], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_the_exact_rule_stays_exact(sampling: Sampling, seed: int) -> None:
    """The output law by enumeration: the target can say " a", which the draft never proposes."""
    context = [0, 3, 1, 0, 1]
    model = random_model(seed, 4)
    shared = SharedVocabulary(random_model(seed + 10, 5), THEIRS, OURS)
    assert shared.n_shared == 3

    def target_logits(tokens):
        return model.logits([*context, *tokens])[0]

    def draft_law(tokens):
        return law(shared.logits([*context, *tokens])[0], sampling)

    found = output_law(ExactRejection(), target_logits, draft_law, sampling, length=2, vocab_size=4)
    expected = plain_law(target_logits, sampling, length=2, vocab_size=4)
    assert total_variation(found, expected) < 1e-12


def test_what_is_drawn_has_the_law_that_is_handed_over() -> None:
    shared = SharedVocabulary(random_model(3, 5), THEIRS, OURS)
    drafter = ModelDrafter(shared, 4)
    for seed in range(20):
        draft = drafter.propose([0, 3], 4, sampling=Sampling(temperature=1), noise=Noise(seed), end_tokens=frozenset())
        ids = [0, 3]
        for token, drawn_from in zip(draft.tokens, draft.laws, strict=True):
            row = shared.logits(ids)[0]
            assert drawn_from.dense(4) == pytest.approx(slow_law(row))
            assert token != 3
            ids.append(token)


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_a_run_from_two_files_with_different_vocabularies(tmp_path: Path, temperature: float) -> None:
    target = write(tmp_path / "target.gguf", Tiny())
    draft = write(tmp_path / "other.gguf", Tiny(n_layers=1, fields=OTHER))
    spec = RunSpec(
        target=str(target),
        drafter=f"model:{draft}",
        prompt="hello world",
        temperature=temperature,
        max_tokens=24,
        backend="numpy",
    )
    built = build(spec)
    assert built.drafter.name == "model:other (263 of 271 tokens)"
    events = list(built.events())
    assert isinstance(events[-1], Finished)
    assert not events[-1].error
    assert sum(event.n_drafted for event in events if isinstance(event, Step)) > 0
    if temperature == 0:
        plain = decode(
            built.loaded.model.fork(),
            NoDraft(),
            built.prompt,
            lengths=FixedLength(0),
            sampling=Sampling(temperature=0),
            max_tokens=24,
            end_tokens=built.loaded.tokenizer.end_tokens,
        )
        assert [*plain][-1].ids == events[-1].ids


def test_vocabularies_with_nothing_in_common_are_refused_before_the_run(tmp_path: Path) -> None:
    strange = [f"word{place}" for place in range(len(OTHER_TOKENS))]
    fields = OTHER | {"tokenizer.ggml.tokens": strange, "tokenizer.ggml.merges": ["w o"]}
    target = write(tmp_path / "target.gguf", Tiny())
    draft = write(tmp_path / "strange.gguf", Tiny(n_layers=1, fields=fields))
    with pytest.raises(VocabularyError, match="only 0 are the same"):
        build(RunSpec(target=str(target), drafter=f"model:{draft}", prompt="hello", backend="numpy"))


def test_every_pair_of_words_is_cut_alike_in_one_piece_and_two(shared: SharedVocabulary, target: LoadedModel) -> None:
    words = [target.tokenizer.encode(word) for word in ("hello", " wa", "\n", "12", " ")]
    for one, other in product(words, repeat=2):
        shared.translate(one)
        assert shared.translate([*one, *other]) == shared.fork().translate([*one, *other])


def test_a_function_may_be_the_draft() -> None:
    model = CallableModel(lambda ids: [0.0, 1.0, 2.0, 3.0, 4.0], 5)
    assert SharedVocabulary(model, THEIRS, OURS).logits([0]).tolist() == [[3.0, 1.0, 2.0, -np.inf]]
