"""`python -m engine run`: decode a prompt, show the tokens as they come, then the figures."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, TextIO

from engine.build import build
from engine.cli.bar import loading_bar
from engine.cli.metrics_port import MetricsPort, metrics_port
from engine.cli.screen import Screen, screen_for
from engine.cli.summary import summary
from engine.csv_text import check_csv
from engine.drafter_kinds import CHOICES
from engine.drafters.combined import SURE_GREEDY, SURE_WARM
from engine.errors import PromptError, SettingError, StoreError
from engine.export import tokens_csv, write_csv
from engine.lengths.confident import FIRST, FURTHER
from engine.models.backends import BACKENDS
from engine.policies import POLICIES
from engine.report import Report
from engine.rules import RULES
from engine.sampling import ARITHMETICS
from engine.spec import RunSpec
from engine.store import RunStore
from engine.values import Event, Step

__all__ = ["add_parser", "add_settings", "interrupt", "spec_of"]

DEFAULT = RunSpec()


def add_parser(commands: Any) -> None:
    """Add the command to the parser's commands."""
    parser = commands.add_parser("run", help="decode a prompt", allow_abbrev=False)
    parser.set_defaults(handler=_run)
    add_settings(parser)
    option = parser.add_argument
    option("--json", action="store_true", help="print one JSON object, and nothing else, on standard output")
    option("--save", action="store_true", help="keep the run in the history")
    option("--csv", metavar="FILE", help="write the run as CSV, one row for every decision; "
           "- is standard output, and the text goes to standard error then")  # fmt: skip
    option("--metrics-port", type=int, metavar="N", help="serve the run's counters to Prometheus, from this "
           "machine only, at http://127.0.0.1:N/metrics, until Ctrl-C; 0 takes a free port")  # fmt: skip
    option("--metrics-linger", type=float, metavar="SECONDS",
           help="end so long after the run instead; 0 ends with it")  # fmt: skip


def add_settings(parser: argparse.ArgumentParser, *, prompt_needed: bool = True) -> None:
    """Add the options that describe a run, one for every field of `RunSpec`; `spec_of` reads them."""
    option = parser.add_argument
    option("--target", default=DEFAULT.target, help="a model's name, or the path of a GGUF file (default %(default)s)")
    option(
        "--drafter",
        default=DEFAULT.drafter,
        help=f"{CHOICES} (default %(default)s)",
    )
    option("--rule", default=DEFAULT.rule, help=f"{', '.join(RULES)} (default %(default)s)")
    option("--draft-length", type=int, default=DEFAULT.draft_length, metavar="N", help="0 to 32 (default %(default)s)")
    option("--tree-width", type=int, default=DEFAULT.tree_width, metavar="N",
           help="tree rules: most guesses side by side, 1 (a chain) to 8 (default %(default)s)")  # fmt: skip
    option("--tree-nodes", type=int, default=DEFAULT.tree_nodes, metavar="N",
           help="tree rules: most tokens of a tree, 1 to 32 (default %(default)s)")  # fmt: skip
    option("--length-policy", default=DEFAULT.length_policy, metavar="NAME",
           help=f"how many tokens to draft, up to the draft length: {', '.join(POLICIES)}; docs/length-policies.md "
           "tells them apart (default %(default)s)")  # fmt: skip
    option("--confidence-threshold", type=float, default=DEFAULT.confidence_threshold, metavar="P",
           help="confidence-threshold: stop behind a token that the draft gave less (default %(default)s)")  # fmt: skip
    option("--entropy-bound", type=float, default=DEFAULT.entropy_bound, metavar="P",
           help="entropy-bound: the acceptance that the entropy must promise (default %(default)s)")  # fmt: skip
    option("--start-threshold", type=float, default=DEFAULT.start_threshold, metavar="P",
           help="draft-and-verify: where its threshold begins (default %(default)s)")  # fmt: skip
    option("--temperature", type=float, default=DEFAULT.temperature, metavar="T", help="default %(default)s")
    option("--top-k", type=int, default=DEFAULT.top_k, metavar="K", help="0 keeps every token (default %(default)s)")
    option("--top-p", type=float, default=DEFAULT.top_p, metavar="P", help="1 keeps every token (default %(default)s)")
    option("--min-p", type=float, default=DEFAULT.min_p, metavar="P",
           help="keep tokens at least P times as probable as the best one (default %(default)s)")  # fmt: skip
    option("--repetition-penalty", type=float, default=DEFAULT.repetition_penalty, metavar="R",
           help="divides logits of tokens in prompt and output; 1 changes nothing (default %(default)s)")  # fmt: skip
    option("--frequency-penalty", type=float, default=DEFAULT.frequency_penalty, metavar="F",
           help="off a logit for every time in the output, -2 to 2 (default %(default)s)")  # fmt: skip
    option("--presence-penalty", type=float, default=DEFAULT.presence_penalty, metavar="F",
           help="off a logit for being in the output, -2 to 2 (default %(default)s)")  # fmt: skip
    option("--arithmetic", default=DEFAULT.arithmetic,
           help=f"{' or '.join(ARITHMETICS)}: what exponentiates a row (default %(default)s)")  # fmt: skip
    option("--max-tokens", type=int, default=DEFAULT.max_tokens, metavar="N", help="default %(default)s")
    option("--stop", action="append", default=[], metavar="TEXT", help="end where TEXT appears; may be repeated")
    option("--seed", type=int, default=DEFAULT.seed, help="default %(default)s")
    option("--chat", action=argparse.BooleanOptionalAction, default=DEFAULT.chat, help="use the chat template")
    option("--ngram-max", type=int, default=DEFAULT.ngram_max, metavar="N",
           help=f"longest n-gram; eagle+ngram looks for {SURE_GREEDY} at least, above temperature 0 for {SURE_WARM} "
           "(default %(default)s)")  # fmt: skip
    option("--ngram-match", default=DEFAULT.ngram_match, help="recent or first (default %(default)s)")
    option("--suffix-factor", type=float, default=DEFAULT.suffix_factor, metavar="F",
           help="suffix: a match of m tokens allows F x m + O (default %(default)s)")  # fmt: skip
    option("--suffix-offset", type=float, default=DEFAULT.suffix_offset, metavar="O", help="default %(default)s")
    option("--suffix-min-prob", type=float, default=DEFAULT.suffix_min_prob, metavar="P",
           help="suffix: least probability that a token, and all before it, is kept; the policy confident asks for "
           f"{FIRST} of the first and {FURTHER} of further ones itself (default %(default)s)")  # fmt: skip
    option("--suffix-choice", default=DEFAULT.suffix_choice, help="frequent or recent (default %(default)s)")
    option("--suffix-outputs", action=argparse.BooleanOptionalAction, default=DEFAULT.suffix_outputs,
           help="suffix: look at what earlier runs of this process emitted too; a single command has none")  # fmt: skip
    option("--exit-layer", type=int, default=DEFAULT.exit_layer, metavar="N",
           help="early-exit: layers to go through (default %(default)s: two thirds of them)")  # fmt: skip
    option("--acceptance-probability", type=float, default=DEFAULT.acceptance_probability, metavar="P",
           help="the naive rule's parameter (default %(default)s)")  # fmt: skip
    option("--lenience", type=float, default=DEFAULT.lenience, metavar="L",
           help="of the rule lenience: 0.000001 to 1, which is the exact rule (default %(default)s)")  # fmt: skip
    option("--ensemble-weight", type=float, default=DEFAULT.ensemble_weight, metavar="W",
           help="of the rule ensemble: the target's share, 1 is the exact rule (default %(default)s)")  # fmt: skip
    option("--typical-threshold", type=float, default=DEFAULT.typical_threshold, metavar="E",
           help="of the rule typical: the probability asked for at most (default %(default)s)")  # fmt: skip
    option("--typical-scale", type=float, default=DEFAULT.typical_scale, metavar="D",
           help="of the rule typical: D * exp(-entropy) is asked for if less (default %(default)s)")  # fmt: skip
    option("--agreement", type=float, default=DEFAULT.agreement, metavar="A",
           help="markov: how far the draft agrees with the target, -1 to 1 (default %(default)s)")  # fmt: skip
    option("--target-call-seconds", type=float, default=DEFAULT.target_call_seconds, metavar="S",
           help="markov: simulated seconds of a target call (default: real time)")  # fmt: skip
    option("--draft-call-seconds", type=float, default=DEFAULT.draft_call_seconds, metavar="S",
           help="markov: simulated seconds of a draft call (default: real time)")  # fmt: skip
    option(
        "--backend", default=DEFAULT.backend, help=f"what runs a GGUF file: {', '.join(BACKENDS)} (default %(default)s)"
    )
    option("--exact-rows", action=argparse.BooleanOptionalAction, default=DEFAULT.exact_rows,
           help="rows that are the same, bit for bit, alone and in a block")  # fmt: skip
    option("--probe", type=int, default=DEFAULT.probe, metavar="N",
           help="keep N alternatives of every step, for `runs explain` (default %(default)s: none)")  # fmt: skip
    option("--logprobs", action=argparse.BooleanOptionalAction, default=DEFAULT.logprobs,
           help="note the target's own log-probability of every emitted token")  # fmt: skip
    prompts = parser.add_mutually_exclusive_group(required=prompt_needed)
    prompts.add_argument("--prompt", metavar="TEXT")
    prompts.add_argument("--prompt-file", metavar="FILE", help="read the prompt from FILE; - is standard input")


def _run(arguments: argparse.Namespace) -> int:
    spec = spec_of(arguments)
    if arguments.csv is not None:
        if arguments.csv == "-" and arguments.json:
            raise SettingError("--json and --csv - both want standard output; give --csv a FILE, or drop one of them")
        check_csv(arguments.csv)
    with metrics_port(arguments.metrics_port, arguments.metrics_linger) as metrics:
        return _decode(arguments, spec, metrics)


def _decode(arguments: argparse.Namespace, spec: RunSpec, metrics: MetricsPort | None) -> int:
    with loading_bar() as progress:
        built = build(spec, progress)
    for note in built.notes:
        print(f"note: {note}", file=sys.stderr)
    out = sys.stderr if arguments.csv == "-" else sys.stdout
    screen = None if arguments.json else screen_for(out, built.loaded.tokenizer, spec.stop)
    report = Report()
    events: list[Event] = []
    # what cannot be saved or shown ends neither the run nor the other
    unsaved: StoreError | None = None
    unshown: OSError | None = None
    with ExitStack() as stack:
        cancelled = stack.enter_context(interrupt())
        writer = stack.enter_context(RunStore().begin(spec)) if arguments.save else None
        for event in built.events(cancelled):
            report.add(event)
            events.append(event)
            if metrics:
                metrics.add(event)
            if writer and not unsaved:
                try:
                    writer.add(event)
                except StoreError as trouble:
                    unsaved = trouble
            if screen and isinstance(event, Step) and not unshown:
                unshown = _write(out, screen.step(event))
                if unshown and not writer and arguments.csv is None:
                    raise unshown
        record = report.record()
        if not unshown:
            unshown = _write(out, _end(record, screen))
        if arguments.csv is not None:
            write_csv(tokens_csv(writer.run_id if writer else "", events), arguments.csv)
        for failure in (unsaved, unshown):
            if failure:
                raise failure
    if writer:
        print(f"saved as run {writer.run_id}", file=sys.stderr)
    if record["error"]:
        print(f"error: {record['error']}", file=sys.stderr)
    return 1 if record["finish_reason"] in ("error", "cancelled") else 0


def _write(out: TextIO, text: str) -> OSError | None:
    """Write at once; a failure is returned, so that what else is to be done still is."""
    try:
        out.write(text)
        out.flush()
    except OSError as failure:
        return failure
    return None


def _end(record: Mapping[str, Any], screen: Screen | None) -> str:
    if screen is None:
        return json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"
    return f"{screen.end(record['text'] or '')}\n{summary(record)}\n"


def spec_of(arguments: argparse.Namespace) -> RunSpec:
    """The run that the options of `add_settings` describe."""
    given = {field.name: getattr(arguments, field.name) for field in fields(RunSpec)}
    prompt = _prompt_file(arguments.prompt_file) if arguments.prompt_file else arguments.prompt
    return RunSpec(**given | {"prompt": prompt, "stop": tuple(arguments.stop)})


def _prompt_file(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        raise PromptError(f"the prompt file {name} cannot be read: {failure}; give a UTF-8 text file") from None


@contextmanager
def interrupt() -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C, or a polite kill, end the run after the step in hand; a second Ctrl-C ends it at once."""
    asked = False

    def ask(*_: object) -> None:
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    signals = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, ask) for number in signals}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
