"""What can be wrong with an experiment, in the words used for scenarios: path, value, rule, remedy.

The schema's own rules come from pydantic; this turns its errors into
:class:`~celerysim.errors.Problem`, with the nearest field for a misspelt one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError

from celerysim.errors import Problem, ScenarioError


class ExperimentError(ScenarioError):
    """An experiment cannot be used; ``problems`` holds everything wrong with it at once."""


class Strict(BaseModel):
    """Base of the experiment's models: frozen, unknown fields refused, documented beneath."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, populate_by_name=True
    )


def refuse(rule: str, remedy: str) -> PydanticCustomError:
    """An error of a rule that spans several fields, with its remedy."""
    return PydanticCustomError("celerysim", rule, {"remedy": remedy})


def problem(path: str, value: object, rule: str, remedy: str) -> Problem:
    """A problem with its value shortened to fit on a line."""
    text = value if isinstance(value, str) else repr(value)
    return Problem(path, text if len(text) <= 80 else text[:77] + "...", rule, remedy)


def nearest(name: str, known: Iterable[str]) -> str:
    """The remedy for an unknown name: the nearest known one, or the list of them."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean '{near[0]}'?" if near else f"use one of: {', '.join(known)}"


_REMEDIES = {
    "missing": "add this field",
    "greater_than": "give a value greater than {gt}",
    "greater_than_equal": "give a value of at least {ge}",
    "literal_error": "use one of {expected}",
    "too_short": "give at least {min_length}",
    "int": "write a whole number, such as 10",
    "float": "write a number, such as 1.5",
    "finite": "give a finite number",
    "string": "write a text in quotes",
    "tuple": "write a list, such as [1, 2, 4]",
    "dict": "write a table",
    "model": "write a table, such as {{ from = 1, to = 600, points = 20 }}",
    "bool": "write true or false",
}


def problems_of(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """A pydantic error's problems, in the order of the file."""
    return [_problem(entry, model) for entry in error.errors()]


def _problem(entry: Any, model: type[BaseModel]) -> Problem:
    location: Sequence[str | int] = entry["loc"]
    context: dict[str, Any] = entry.get("ctx") or {}
    kind: str = entry["type"]
    path = ".".join(map(str, location)) or "experiment"
    if kind == "extra_forbidden":
        remedy = nearest(str(location[-1]), _fields(model, location[:-1]))
        return problem(path, entry["input"], "there is no such field", remedy)
    rule = entry["msg"][0].lower() + entry["msg"][1:]
    if "remedy" in context:
        # what several fields break together has no single value to show
        return problem(path, _given(entry["input"]), rule, context["remedy"])
    remedy = _REMEDIES.get(kind) or _REMEDIES.get(kind.split("_")[0]) or "correct the value"
    value = "(missing)" if kind == "missing" else entry["input"]
    return problem(path, value, rule, remedy.format(**context))


def _given(value: Any) -> Any:
    """What was written, without the defaults."""
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_unset=True, by_alias=True)
    return value


def _fields(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """Names, as written in a file, of the fields of the table at ``location``."""
    schema = model.model_json_schema()
    definitions = schema.get("$defs", {})
    node: dict[str, Any] = _resolve(schema, definitions)
    for part in location:
        node = node["items"] if isinstance(part, int) else node["properties"].get(part, {})
        for choice in (node, *node.get("anyOf", ())):
            candidate = _resolve(choice, definitions)
            if "properties" in candidate or "items" in candidate:
                node = candidate
                break
    return list(node.get("properties", {}))


def _resolve(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    reference = node.get("$ref")
    return definitions[reference.rpartition("/")[2]] if reference else node
