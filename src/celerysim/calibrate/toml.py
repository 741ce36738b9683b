"""A scenario as TOML, the way one is written by hand.

Not ``tomli_w``: a dependency for forty lines, and it would write a profile's
steps as arrays of tables, which are hard to read.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")
_WIDTH = 100


def to_toml(data: Mapping[str, Any], head: Iterable[str] = ()) -> str:
    """``data`` (tables of plain values) as TOML beneath a head comment.

    ``head`` holds paragraphs, each "Key: text", which are wrapped.
    """
    lines = []
    for paragraph in head:
        lines += textwrap.wrap(
            paragraph, _WIDTH, initial_indent="# ", subsequent_indent="#   ", break_long_words=False
        )
    lines += _table(data, ())
    return "\n".join(lines).lstrip("\n") + "\n"


def _table(data: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    values = {key: value for key, value in data.items() if not _is_table(value, path)}
    tables = {key: value for key, value in data.items() if _is_table(value, path)}
    lines = []
    if values:
        if path:
            lines += ["", f"[{'.'.join(map(_key, path))}]"]
        lines += [f"{_key(key)} = {_value(value)}" for key, value in values.items()]
    for key, value in tables.items():
        lines += _table(value, (*path, key))
    return lines


def _is_table(value: Any, path: tuple[str, ...]) -> bool:
    """Whether a value gets a heading of its own; a distribution stays on its line."""
    return isinstance(value, Mapping) and "kind" not in value if path else True


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return _text(value)
        case Mapping():
            inside = ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items())
            return f"{{ {inside} }}"
    items = [_value(item) for item in value]
    line = f"[{', '.join(items)}]"
    if len(line) < _WIDTH - 20 or any(item.startswith("{ kind") for item in items):
        return line
    body = textwrap.fill(
        ", ".join(items), _WIDTH - 8, break_long_words=False, break_on_hyphens=False
    )
    if any(item.startswith("{") for item in items):
        body = ",\n".join(items)
    return "[\n" + textwrap.indent(body, "    ") + ",\n]"


def _key(key: str) -> str:
    return key if _BARE.match(key) else _text(key)


def _text(text: str) -> str:
    """A basic string; JSON's escapes are TOML's, but for DEL and halves of characters."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
