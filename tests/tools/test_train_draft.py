"""The network that is trained is the network that runs, and its loss has the slope that it says. Needs torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from engine.drafters.head_file import read_head  # noqa: E402  (torch first: the rest needs it)
from engine.drafters.head_network import NumpyHead  # noqa: E402
from engine.drafters.screen import Screen  # noqa: E402
from tools.train_draft.export import load_into, write_head  # noqa: E402
from tools.train_draft.head import Head  # noqa: E402
from tools.train_draft.held_out import read_prompts  # noqa: E402
from tools.train_draft.losses import law_loss  # noqa: E402
from tools.train_draft.prompts import CATEGORIES, draw  # noqa: E402

WIDTH = 64


@pytest.fixture
def head() -> Head:
    torch.manual_seed(0)
    head = Head(WIDTH, 3, n_heads=4, n_kv_heads=2, ffn_width=96)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
        head.feature_mean.normal_()
    return head


def test_engine_runs_what_was_trained(head: Head, tmp_path: Path) -> None:
    rows = torch.randn(50, WIDTH)
    path = tmp_path / "head.npz"
    hidden = torch.randn(500, WIDTH)
    write_head(path, head, target_sha256="x", taps=(1, 2), tokens=torch.arange(50), head_rows=rows, hidden=hidden)
    load_into(head, path)  # with its matrices rounded, as the engine sees them
    weights = read_head(path)
    network = NumpyHead(weights, Screen(weights, rows.numpy()), 64)
    n, depths = 9, 3
    features, embeddings = torch.randn(1, n, 3, WIDTH), torch.randn(1, n + depths - 1, WIDTH)
    with torch.no_grad():
        guesses = head(features, embeddings, [torch.ones(1, n, dtype=torch.bool)] * depths)
    for anchor in range(n):
        own = slice(anchor, anchor + 1)
        guess = network.read(anchor, features[0, own].numpy(), embeddings[0, own].numpy())
        for depth in range(depths):
            expected = (guesses[depth][anchor] @ rows.T).numpy()
            np.testing.assert_allclose(guess.logits, expected[guess.tokens], rtol=1e-3, atol=1e-3)
            if depth + 1 < depths:
                guess = network.go_on(anchor + depth + 1, guess.state, embeddings[0, anchor + depth + 1].numpy())


@pytest.mark.parametrize("variation", [0.0, 2.0])
def test_loss_has_the_slope_of_its_value(variation: float) -> None:
    torch.manual_seed(1)
    guess, rows = torch.randn(5, 8, dtype=torch.double, requires_grad=True), torch.randn(20, 8, dtype=torch.double)
    laws = torch.randn(4, 20, dtype=torch.double).softmax(-1)
    places, weights = torch.tensor([0, 1, 2, 3, 1]), torch.tensor([1.0, 0.3, 1.0, 1.0, 0.3], dtype=torch.double)

    def plainly(guess: torch.Tensor) -> torch.Tensor:
        draft, target = (guess @ rows.T).softmax(-1), laws[places]
        cost = -(target * draft.log()).sum(-1) - variation * torch.minimum(target, draft).sum(-1)
        return (cost * weights).sum() / weights.sum()

    value, agreement = law_loss(guess, rows, laws, places, weights, variation)
    (slope,) = torch.autograd.grad(value, guess)
    expected = plainly(guess)
    (expected_slope,) = torch.autograd.grad(expected, guess)
    assert value.item() == pytest.approx(expected.item())
    torch.testing.assert_close(slope, expected_slope)
    assert 0 < agreement.overlap <= 1


def test_held_out_prompts_are_no_training_prompts() -> None:
    import random

    held_out = read_prompts()
    assert len(held_out) == 24
    assert {category for category, _ in held_out} == set(CATEGORIES)
    trained = {prompt for _, prompt in draw(random.Random(0), 300, ["A text."] * 30)}
    assert not trained & {prompt for _, prompt in held_out}
