"""Events as plain JSON objects, and back without loss.

An object has the key "type" and the fields of the event; a field that equals its default is left
out, so that a step stays small.  A float comes back bit for bit; NaN and infinity, which JSON does
not have, are refused.  The text is ASCII, so that whatever a token holds passes any transport.

A default in `engine.values` or `engine.evidence` is part of this format: change one, and stored events change with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from engine.errors import StoreError
from engine.evidence import Alternative, Choice, Evidence, ExactTest, PositionEvidence, Term
from engine.values import Decision, Drafted, Event, Finished, Started, Step

__all__ = ["event_from_json", "event_from_object", "event_to_json", "event_to_object"]

Check = Callable[[Any], bool]

TYPES: dict[str, type[Event]] = {"started": Started, "drafted": Drafted, "step": Step, "finished": Finished}
NAMES = {kind: name for name, kind in TYPES.items()}
EVIDENCE = (Evidence, Choice, Alternative, PositionEvidence, ExactTest, Term)


def event_to_object(event: Event) -> dict[str, Any]:
    """The event as a dict of numbers, strings, lists and dicts.

    Raises
    ------
    TypeError
        If `event` is no event.

    Examples
    --------
    >>> step = Step(0, 1, (Decision(0, "plain", target_token=3),), (3,), 0.0, 0.5, 0.0, 0.75)
    >>> event_to_object(step)["decisions"]
    [{'position': 0, 'outcome': 'plain', 'target_token': 3}]
    """
    if type(event) not in NAMES:
        raise TypeError(f"an event is one of {', '.join(TYPES)}; this is a {type(event).__name__}")
    return {"type": NAMES[type(event)], **_plain(event)}


def event_to_json(event: Event) -> str:
    """The event as JSON text, in one line.

    Raises
    ------
    StoreError
        If the event holds something that JSON cannot, such as NaN.

    Examples
    --------
    >>> event_to_json(Drafted(0, 9, (4,), (" draft",), 0.5))
    '{"type":"drafted","index":0,"context_length":9,"tokens":[4],"texts":[" draft"],"draft_seconds":0.5}'
    """
    try:
        return json.dumps(event_to_object(event), separators=(",", ":"), allow_nan=False)
    except ValueError as failure:
        raise StoreError(f"the event {event} cannot be written as JSON: {failure}") from failure


def event_from_object(data: object) -> Event:
    """The event that `event_to_object` made a dict of.

    Raises
    ------
    StoreError
        If the type or a field is unknown, missing, or not what it should be.
    """
    if not isinstance(data, Mapping):
        raise StoreError(f"an event must be a JSON object; this is a {type(data).__name__}")
    rest = dict(data)
    name = rest.pop("type", None)
    if not isinstance(name, str) or name not in TYPES:
        raise StoreError(
            f"an event of type {name!r} is unknown here, which knows {', '.join(TYPES)}; "
            "it may come from a newer version of Draftscope: update it to read this run"
        )
    return cast(Event, _built(TYPES[name], rest))


def event_from_json(text: str) -> Event:
    """The event that `event_to_json` wrote.

    Raises
    ------
    StoreError
        If the text is not JSON, or is no event that this version knows.

    Examples
    --------
    >>> event = Finished("length", (3, 1), "a b", 0.1, 0.30000000000000004)
    >>> event_from_json(event_to_json(event)) == event
    True
    """
    try:
        data = json.loads(text)
    except ValueError as failure:
        raise StoreError(f"an event must be a JSON object; this is not JSON: {failure}") from None
    return event_from_object(data)


def _plain(value: Any) -> dict[str, Any]:
    shown = {}
    for field in fields(value):
        item = getattr(value, field.name)
        if isinstance(item, np.generic):  # a drafter or a rule of the user's may count in numpy
            item = item.item()
        if type(item) is type(field.default) and item == field.default:
            continue
        shown[field.name] = [_part(part) for part in item] if isinstance(item, tuple) else _part(item)
    return shown


def _part(part: Any) -> Any:
    if isinstance(part, np.generic):
        return part.item()
    return _plain(part) if is_dataclass(part) else part


def _built(kind: type[Any], data: object) -> Any:
    """A value of the dataclass `kind`; lists become tuples."""
    if not isinstance(data, Mapping):
        raise StoreError(f"{_named(kind)} must be a JSON object; this is a {type(data).__name__}")
    fields_of_kind, values = FIELDS[kind], {}
    for name, item in data.items():
        if name not in fields_of_kind:
            raise StoreError(
                f"{_named(kind)} has no field {name!r} here; "
                "it may come from a newer version of Draftscope: update it to read this run"
            )
        inner, fits = fields_of_kind[name]
        if isinstance(item, list | dict):
            item = _read(inner, item)
        if not fits(item):
            raise StoreError(f"the field {name!r} of {_named(kind)} is {item!r}; the stored run is damaged")
        values[name] = item
    missing = [name for name in REQUIRED[kind] if name not in values]
    if missing:
        raise StoreError(f"{_named(kind)} lacks its field {missing[0]!r}; the stored run is damaged")
    return kind(**values)


def _named(kind: type[Any]) -> str:
    return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"


def _read(inner: type[Any] | None, item: list[Any] | dict[str, Any]) -> Any:
    """A field's value; `inner` is the dataclass that it is, or holds, if any."""
    if isinstance(item, list):
        return tuple(item if inner is None else [_built(inner, part) for part in item])
    return item if inner is None else _built(inner, item)


def _inner(hint: Any) -> type[Any] | None:
    """The dataclass in an annotation, if there is one."""
    if isinstance(hint, type) and is_dataclass(hint):
        return hint
    return next(filter(None, map(_inner, get_args(hint))), None)


def _check(hint: Any) -> Check:
    """A test of whether a value fits the annotation `hint`."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return lambda value: isinstance(value, str) and value in arguments
    if origin in (UnionType, Union):
        if all(isinstance(argument, type) for argument in arguments):  # one look instead of one for each
            plain = {kind for argument in arguments for kind in _kinds(argument)}
            return lambda value: type(value) in plain
        checks = [_check(argument) for argument in arguments]
        return lambda value: any(check(value) for check in checks)
    if origin is tuple:
        inner = _check(arguments[0])
        return lambda value: isinstance(value, tuple) and all(map(inner, value))
    kinds = _kinds(hint)
    return lambda value: type(value) in kinds


def _kinds(hint: Any) -> tuple[type[Any], ...]:
    return (int, float) if hint is float else (NoneType if hint is None else hint,)


HINTS = {kind: get_type_hints(kind) for kind in (*NAMES, Decision, *EVIDENCE)}

FIELDS: dict[type[Any], dict[str, tuple[type[Any] | None, Check]]] = {
    kind: {name: (_inner(hint), _check(hint)) for name, hint in hints.items()} for kind, hints in HINTS.items()
}
"""Per class and field, the dataclass that it is or holds, and whether a value fits; `bool` is no number here."""
REQUIRED = {kind: [field.name for field in fields(kind) if field.default is MISSING] for kind in FIELDS}
"""Per class, the fields that have no default."""
