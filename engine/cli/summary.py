"""The figures of a run as lines for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.figure_text import fixed

__all__ = ["backend", "summary"]

TIMES = "draft {draft_seconds:.3f} s, verify {verify_seconds:.3f} s, overhead {overhead_seconds:.3f} s"


def backend(record: Mapping[str, Any]) -> str:
    """What computed the target's rows, and whether blocks change them.

    Examples
    --------
    >>> backend({"backend": "ort", "exact_rows": True})
    'ort, rows the same alone and in a block'
    """
    rows = "the same alone and in a block" if record["exact_rows"] else "may differ in rounding alone and in a block"
    return f"{record['backend']}, rows {rows}"


def summary(record: Mapping[str, Any]) -> str:
    """What to tell of a run, from its record (`engine.report.Report.record`)."""
    time = " SIMULATED" if record["simulated"] else ""
    lines = {
        "run": _who(record),
        **({"backend": backend(record)} if record.get("backend") else {}),
        "speculation": record["speculation"],
        "tokens": f"{record['tokens_generated']} emitted in {record['steps']} steps, "
        f"{fixed(record['tokens_per_step'])} a step; {_end(record)}",
        "acceptance": f"{record['accepted']} of {record['drafted']} drafted "
        f"(acceptance rate {fixed(record['acceptance_rate'], 3)}); "
        f"per-token acceptance {fixed(record['per_token_acceptance'], 3)}",
        f"speed{time}": f"{fixed(record['tokens_per_second'], 1)} tokens/s after "
        f"{record['prefill_seconds']:.3f} s of prefill; {record['total_time']:.3f} s in all",
        f"time{time}": TIMES.format(**record),
    }
    if record.get("probe_seconds"):
        lines["explaining"] = f"{record['probe_seconds']:.3f} s for the probe, in no other time"
    if record.get("logprob_sum") is not None:
        lines["perplexity"] = (
            f"{fixed(record['perplexity'])}; log-probability {fixed(record['logprob_sum'])} in the target's raw law"
        )
    if record["near_ties"]:
        lines["near-ties"] = f"{record['near_ties']} tokens whose logit led by less than rounding may shift"
    if not record["identities_ok"]:
        lines["WARNING"] = "the counts of this run do not add up; please report it"
    return "\n".join(f"{name:<18}{text}" for name, text in lines.items())


def _who(record: Mapping[str, Any]) -> str:
    if record["target"] is None:
        return "not started"
    promise = {True: " (lossless)", False: " (lossy)"}.get(record["lossless"], "")
    return "{target}, drafter {drafter}, rule {rule}, seed {seed}".format(**record) + promise


def _end(record: Mapping[str, Any]) -> str:
    reason = record["finish_reason"]
    return f"ended by {reason.replace('_', ' ')}" if reason else "without an end"
