"""Train a draft head on what `generate` wrote.

    python -m tools.train_draft.train MODEL.gguf DATA head.npz --minutes 50

The head learns the target's laws at depths 0, 1 and 2 (Kullback-Leibler, later with total
variation) and its hidden rows (smooth L1). It starts from a ridge regression, or from another
head with --start. With --steps in place of --minutes the same seed and data give the same head.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import math
import random
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from tools.train_draft.batches import cut, padded
from tools.train_draft.export import load_into, write_head
from tools.train_draft.generate import TAPS
from tools.train_draft.head import Head
from tools.train_draft.losses import Agreement, law_loss
from tools.train_draft.ridge import start_from_ridge, start_statistics
from tools.train_draft.shards import Row, read_shards
from tools.train_draft.target import Target
from tools.train_draft.vocabulary import ranked_tokens

__all__ = ["Losses", "batch_loss"]

DEPTH_WEIGHTS = (1.0, 0.8, 0.6)
SYSTEM_PROMPT = 26  # tokens at the front of every text, of which nothing is to be learnt
LINEAR = ("feature", "feature_token", "state", "token", "output_bias")  # already good when they start
N_CANDIDATES = 16_384
AVERAGED = 0.005  # weight of the newest in the running mean
EVERY_SECONDS = 20
CHECKPOINT_SECONDS = 360


@dataclass(frozen=True, slots=True)
class Losses:
    """What a step is asked for: weight of the hidden-row loss, of total variation, of the prompt's tokens."""

    hidden: float = 1.0
    variation: float = 0.0
    prompt: float = 0.3


def batch_loss(
    head: Head, rows: list[Row], embedding: Tensor, learnt: Tensor, losses: Losses, *, all_deep: bool = False
) -> tuple[Tensor, list[Agreement], int]:
    """The loss of a batch, how well each depth agrees, and the number of anchors at depth 0.

    Half of the texts go beyond depth 0 (all of them if asked), which is enough to learn from.

    Parameters
    ----------
    learnt : Tensor, shape (V, W)
        Head rows of the tokens that the laws are compared over.
    """
    n_depths = len(DEPTH_WEIGHTS)
    batch = padded(rows, n_depths)
    places = torch.arange(batch.features.shape[1])[None]  # (1, T)
    read = torch.minimum(batch.n_features, batch.n_ids - 1)[:, None]
    has_law = (places >= SYSTEM_PROMPT) & (places < read)
    index = torch.full((len(rows), places.shape[1] + n_depths), -1)
    index[:, : places.shape[1]][has_law] = torch.arange(int(has_law.sum()))
    hidden = batch.features[:, :, 0]
    with torch.no_grad():
        laws = (hidden[has_law] @ learnt.T).softmax(-1)
    written = places >= batch.n_prompt[:, None] - 2  # anchors that predict what the target wrote
    n_deep = len(rows) if all_deep else max(1, len(rows) // 2)
    wanted, law_places = [], []
    for depth in range(n_depths):
        of_depth = index[:, depth + 1 : depth + 1 + places.shape[1]]
        anchors = (of_depth >= 0) & (
            written | (places >= SYSTEM_PROMPT) if depth == 0 and losses.prompt > 0 else written
        )
        if depth > 0:
            anchors = anchors[:n_deep]
        wanted.append(anchors)
        law_places.append(of_depth[: len(anchors)][anchors])
    guesses = head(batch.features, embedding[batch.ids[:, 1:]], wanted)
    total, agreements = torch.zeros(()), []
    flat_hidden = hidden[has_law]
    for depth, guess in enumerate(guesses):
        weights = torch.where(written[: len(wanted[depth])][wanted[depth]], 1.0, losses.prompt)
        law, agreement = law_loss(guess, learnt, laws, law_places[depth], weights, losses.variation)
        aim = flat_hidden[law_places[depth]]
        near = functional.smooth_l1_loss(guess / head.output_scale, aim / head.output_scale, reduction="none").mean(-1)
        total = total + DEPTH_WEIGHTS[depth] * (law + losses.hidden * (near * weights).sum() / weights.sum())
        agreements.append(agreement)
    return total, agreements, len(law_places[0])


def validate(head: Head, rows: list[Row], embedding: Tensor, learnt: Tensor) -> str:
    """Agreement and overlap at each depth over texts that are not trained on."""
    sums, n = torch.zeros(len(DEPTH_WEIGHTS), 3), 0
    with torch.inference_mode():
        for batch in cut(rows, 4000, random.Random(0)):
            _, agreements, n_anchors = batch_loss(head, batch, embedding, learnt, Losses(prompt=0.0), all_deep=True)
            sums += n_anchors * torch.tensor([[a.same_best, a.overlap, a.cross_entropy] for a in agreements])
            n += n_anchors
    return " | ".join(f"{same:.4f} {overlap:.4f} {entropy:.3f}" for same, overlap, entropy in (sums / n).tolist())


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument(
        "data", type=Path, help="folder with the shards of generate; those that appear later are read too"
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--start", type=Path, help="a head to go on with")
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--steps", type=float, default=math.inf)
    parser.add_argument("--rate", type=float, default=1e-3, help="learning rate of the layer (default %(default)s)")
    parser.add_argument("--linear", type=float, default=0.1, help="that of the linear maps, as a part of --rate")
    parser.add_argument("--learnt", type=int, default=6144, help="tokens that laws are compared over")
    parser.add_argument("--batch", type=int, default=1500, help="tokens in a batch, with padding")
    parser.add_argument(
        "--variation-from", type=float, default=0.8, help="part of the run after which total variation counts"
    )
    parser.add_argument("--variation", type=float, default=2.0, help="its weight")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    if math.isinf(min(arguments.minutes, arguments.steps)):
        parser.error("say when to end: --minutes or --steps")
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    rng = random.Random(arguments.seed)
    target = Target(arguments.model, TAPS)
    embedding, width = target.embedding, target.shape.width
    sha256 = hashlib.sha256(arguments.model.read_bytes()).hexdigest()

    seen: set[Path] = set()
    rows = _long_enough(read_shards(arguments.data, skip=seen))
    held_back, rows = rows[::40], [row for place, row in enumerate(rows) if place % 40]
    head = Head(width, 1 + len(TAPS))
    ranked = ranked_tokens(rows, target.head, target.tokenizer.end_tokens)
    candidates = ranked[:N_CANDIDATES].sort().values
    if arguments.start:
        candidates = load_into(head, arguments.start)
    else:
        start_statistics(head, rows, embedding)
        start_from_ridge(head, rows, embedding)
    learnt = target.head[ranked[: arguments.learnt].sort().values].contiguous()
    print(f"{len(rows)} texts, {_n_written(rows)} tokens; {len(held_back)} texts held back", flush=True)
    print(f"start: {validate(head, held_back, embedding, learnt)}", flush=True)

    def write(path: Path, chosen: Head) -> None:
        hidden = torch.cat([row.features[row.n_prompt :, 0].float() for row in rows[::7]])
        write_head(
            path, chosen, target_sha256=sha256, taps=TAPS, tokens=candidates, head_rows=target.head[candidates],
            hidden=hidden,
        )  # fmt: skip

    averaged = copy.deepcopy(head)  # a running mean of the weights; the better of the two is written
    optimiser = torch.optim.AdamW(_groups(head), lr=arguments.rate, betas=(0.9, 0.95), fused=True)
    began = printed = saved = time.monotonic()
    step = n_presented = epoch = 0
    recent: list[list[Agreement]] = []
    progress = 0.0
    while progress < 1:
        epoch += 1
        if epoch > 1 and math.isinf(arguments.steps):
            rows += _long_enough(read_shards(arguments.data, skip=seen))
            print(f"epoch {epoch}: {len(rows)} texts, {_n_written(rows)} tokens", flush=True)
        for batch in cut(rows, arguments.batch, rng):
            progress = max((time.monotonic() - began) / 60 / arguments.minutes, step / arguments.steps)
            if progress >= 1:
                break
            rate = arguments.rate * min(1.0, (step + 1) / 20) * (0.03 + 0.97 * (1 + math.cos(math.pi * progress)) / 2)
            for group in optimiser.param_groups:
                group["lr"] = rate * (arguments.linear if group["linear"] else 1.0)
            variation = arguments.variation if progress >= arguments.variation_from else 0.0
            loss, agreements, n_anchors = batch_loss(head, batch, embedding, learnt, Losses(variation=variation))
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
            optimiser.step()
            with torch.no_grad():
                for mean, latest in zip(averaged.parameters(), head.parameters(), strict=True):
                    mean.lerp_(latest, max(AVERAGED, 1 / (step + 1)))
            step, n_presented = step + 1, n_presented + n_anchors
            recent = [*recent[-19:], agreements]
            now = time.monotonic()
            if now - printed > EVERY_SECONDS:
                printed = now
                means = [_mean([agreements[depth] for agreements in recent]) for depth in range(len(DEPTH_WEIGHTS))]
                print(
                    f"{now - began:.0f} s, epoch {epoch}, step {step}, {n_presented} anchors, "
                    f"{n_presented / (now - began):.0f}/s: {' | '.join(means)}",
                    flush=True,
                )
            if now - saved > CHECKPOINT_SECONDS:
                saved = now
                torch.save(averaged.state_dict(), arguments.out.with_suffix(f".{int((now - began) / 60)}.pt"))
                print(f"checkpoint: {validate(averaged, held_back, embedding, learnt)}", flush=True)
    ends = {
        name: (validate(made, held_back, embedding, learnt), made)
        for name, made in (("last", head), ("mean", averaged))
    }
    for name, (words, _) in ends.items():
        print(f"end, {name} weights: {words}", flush=True)
    chosen = max(ends.values(), key=lambda end: sum(map(float, end[0].split(" | ")[0].split()[:2])))[1]
    torch.save(chosen.state_dict(), arguments.out.with_suffix(".pt"))
    write(arguments.out, chosen)


def _mean(agreements: list[Agreement]) -> str:
    same = sum(agreement.same_best for agreement in agreements) / len(agreements)
    overlap = sum(agreement.overlap for agreement in agreements) / len(agreements)
    return f"{same:.3f} {overlap:.3f}"


def _groups(head: Head) -> list[dict[str, object]]:
    parameters = dict(head.named_parameters())
    linear = [parameter for name, parameter in parameters.items() if name in LINEAR]
    matrices = [parameter for name, parameter in parameters.items() if name not in LINEAR and parameter.ndim > 1]
    norms = [parameter for name, parameter in parameters.items() if name not in LINEAR and parameter.ndim == 1]
    return [
        {"params": matrices, "weight_decay": 0.02, "linear": False},
        {"params": norms, "weight_decay": 0.0, "linear": False},
        {"params": linear, "weight_decay": 0.0, "linear": True},
    ]


def _long_enough(rows: list[Row]) -> list[Row]:
    return [row for row in rows if len(row.ids) - row.n_prompt >= 4]


def _n_written(rows: list[Row]) -> int:
    return sum(len(row.ids) - row.n_prompt for row in rows)


if __name__ == "__main__":
    main()
