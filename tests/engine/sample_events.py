"""Events of a made-up run: every outcome, odd texts, floats that decimal rounding would spoil."""

from collections.abc import Iterator

from engine.values import Decision, Drafted, Event, Finished, Started, Step

TEXTS = ("=1+1", " \U0001f600", "汉字", 'say "x", y', "a\nb\r", "\0nul", "-", "<F0 9F>", "", "NA")


def sample_events(n_steps: int = 6, *, simulated: bool = False) -> Iterator[Event]:
    """A whole run, from `Started` to `Finished`."""
    yield Started("target", "model:draft", "exact", True, 7, (1, 2, 3), simulated)
    at_seconds = 0.1
    emitted: list[int] = []
    for index in range(n_steps):
        step = sample_step(index, 3 + len(emitted), at_seconds)
        drafted = [decision for decision in step.decisions if decision.draft_token is not None]
        yield Drafted(
            index,
            step.context_length,
            tuple(decision.draft_token or 0 for decision in drafted),
            tuple(decision.draft_text for decision in drafted),
            step.draft_seconds,
            step.note,
        )
        yield step
        emitted.extend(step.emitted)
        at_seconds = step.at_seconds
    yield Finished("length", tuple(emitted), "the \U0001f600 text\0", 0.1, at_seconds + 1 / 3)


def sample_step(index: int, context_length: int, at_seconds: float) -> Step:
    """A step: accepted and rejected and unreached; or accepted and bonus; or plain."""
    text = TEXTS[index % len(TEXTS)]
    seconds = (1 / 3e5, 0.1 + 0.2, 1e-9)
    at_seconds += sum(seconds)
    if index % 3 == 2:
        plain = Decision(0, "plain", target_token=index, emitted_prob=0.5, margin=1e-300, target_text=text)
        return Step(index, context_length, (plain,), (index,), *seconds, at_seconds, "the draft length is 0")
    accepted = Decision(
        0, "accepted", 5, 5, True, False, 0.1, 0.2, 1.0, 2**-53, 0.2, None, draft_text=text, target_text=text
    )
    if index % 3 == 1:
        bonus = Decision(
            1, "bonus", target_token=9, emitted_prob=0.25, logprob=-1 / 3, target_text=text, target_parts=3
        )
        return Step(index, context_length, (accepted, bonus), (5, 9), *seconds, at_seconds)
    rejected = Decision(
        1, "rejected", 6, 0, False, False, 0.7, 0.1, 1 / 7, 0.9, 0.3, -2.5e-7, draft_text="@x", target_text=text
    )
    unreached = Decision(2, "unreached", 7, draft_text=text)
    return Step(index, context_length, (accepted, rejected, unreached), (5, 0), *seconds, at_seconds)
