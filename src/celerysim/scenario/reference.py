"""The scenario's reference: every field with its type, default and documentation."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from celerysim.scenario import distributions, schema
from celerysim.scenario.costs import Costs

#: Sections in the order of a file; a section with several models has one for each ``kind``.
SECTIONS: dict[str, tuple[type[BaseModel], ...]] = {
    "producer": (schema.Batches, schema.Rate, schema.Poisson, schema.Times),
    "tasks": (schema.Tasks,),
    "tasks.profiles.NAME": (schema.Profile,),
    "tasks.profiles.NAME.aftermath": (schema.Aftermath,),
    "tasks.profiles.NAME.steps": (schema.Step,),
    "broker": (schema.Broker,),
    "worker": (schema.Worker,),
    "machine": (schema.Machine,),
    "run": (schema.Run,),
    "costs": (Costs,),
}
DISTRIBUTIONS: tuple[type[BaseModel], ...] = (
    distributions.Normal,
    distributions.LogNormal,
    distributions.Gamma,
    distributions.Exponential,
    distributions.Uniform,
    distributions.Empirical,
)


def markdown() -> str:
    """The reference as Markdown."""
    lines = [
        "# The scenario file",
        "",
        "A TOML file with the sections below; unknown fields are refused. Any field can be given",
        "on the command line: `--set worker.keepalive=600`. (Printed by `celerysim fields`.)",
        "",
        "*Seconds* is a number, or a distribution: a table such as",
        '`{ kind = "lognormal", mean = 0.5, sd = 0.1 }`. Every task draws its own value.',
        "",
        "| kind | fields | |",
        "|---|---|---|",
    ]
    for model in DISTRIBUTIONS:
        fields = ", ".join(name for name in model.model_fields if name != "kind")
        lines.append(f"| `{_kind(model)}` | {fields} | {_text(inspect.getdoc(model))} |")
    for section, models in SECTIONS.items():
        lines += ["", f"## [{section}]"]
        for model in models:
            kind = _kind(model) if len(models) > 1 else None
            if kind:
                lines += ["", f'### kind = "{kind}"']
            lines += ["", _text(inspect.getdoc(model)), "", *_table(model)]
    return "\n".join(lines) + "\n"


def _table(model: type[BaseModel]) -> Iterator[str]:
    yield "| field | type | default | |"
    yield "|---|---|---|---|"
    for name, field in model.model_fields.items():
        if name == "kind" and model is not schema.Broker:
            continue
        yield (
            f"| `{name}` | {_type(field.annotation)} | {_default(field)} "
            f"| {_text(field.description)} |"
        )


def _kind(model: type[BaseModel]) -> str:
    return str(get_args(model.model_fields["kind"].annotation)[0])


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if isinstance(value, BaseModel):
        return ""
    return "none" if value is None else f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _type(annotation: Any) -> str:
    """A type in a user's words."""
    if get_origin(annotation) is Annotated:
        return _type(get_args(annotation)[0])
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if origin in (typing.Union, types.UnionType):
        known = [a for a in arguments if a is not type(None)]
        if any(_is_distribution(a) for a in known):
            return "Seconds"
        return " or ".join(_type(a) for a in known)
    if origin is tuple:
        inner = [a for a in arguments if a is not Ellipsis]
        return "list of " + " and ".join(dict.fromkeys(_type(a) for a in inner))
    if origin is dict:
        return "tables by name"
    plain = {int: "whole number", float: "number", str: "text", bool: "true or false"}
    return plain.get(annotation, "table")


def _is_distribution(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (typing.Union, types.UnionType):
        return any(_is_distribution(a) for a in get_args(annotation))
    return annotation is distributions.Constant


def _text(text: str | None) -> str:
    return " ".join((text or "").replace("``", "`").replace("|", "\\|").split())
