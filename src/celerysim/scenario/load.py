"""Reading scenarios: a TOML file or a shipped name, dotted overrides, all errors at once."""

from __future__ import annotations

import difflib
import itertools
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from celerysim.errors import Problem, ScenarioError
from celerysim.scenario.schema import Scenario

_PACKAGED = Path(__file__).parents[1] / "models"  # in an installed wheel
_CHECKOUT = Path(__file__).parents[3] / "models"  # in an editable install


def shipped() -> dict[str, Path]:
    """The scenarios that come with celerysim, by name."""
    folder = _PACKAGED if _PACKAGED.is_dir() else _CHECKOUT
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def descriptions() -> dict[str, str]:
    """The head comment of each shipped scenario, by name."""
    found = {}
    for name, path in shipped().items():
        head = itertools.takewhile(
            lambda line: line.startswith("#"), path.read_text(encoding="utf-8").splitlines()
        )
        found[name] = "\n".join(line.removeprefix("#").removeprefix(" ") for line in head)
    return found


def load_scenario(source: str | Path, overrides: Iterable[str] = ()) -> Scenario:
    """The scenario of a TOML file or of a shipped name, with overrides applied.

    ``overrides`` are ``dotted.path=value`` with a TOML value, as on the command
    line: ``worker.autoscale=[4,2]``. A bare word counts as a string.

    Raises:
        ScenarioError: the file is missing or no TOML, or anything in it is
            wrong; everything wrong is reported at once.
    """
    path = _find(source)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(str(source), str(error)) from error
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(
            str(source),
            [
                Problem(
                    "file",
                    path.name,
                    f"is not valid TOML: {error}",
                    "correct the line named; strings need quotes, tables are [section]",
                )
            ],
        ) from error
    return make_scenario(data, overrides, source=str(source))


def make_scenario(
    data: Mapping[str, Any], overrides: Iterable[str] = (), *, source: str = "scenario"
) -> Scenario:
    """The scenario of nested tables (as TOML gives them), with overrides applied.

    Raises:
        ScenarioError: as :func:`load_scenario`.
    """
    merged = _copy(data)
    problems = [p for p in (_override(merged, item) for item in overrides) if p is not None]
    if problems:
        raise ScenarioError(source, problems)
    try:
        return Scenario.model_validate(merged)
    except ValidationError as error:
        raise ScenarioError(source, _problems(error)) from None


def override(scenario: Scenario, overrides: Iterable[str]) -> Scenario:
    """``scenario`` with ``dotted.path=value`` overrides applied."""
    return make_scenario(scenario.model_dump(mode="json", exclude_none=True), overrides)


def _find(source: str | Path) -> Path:
    path = Path(source)
    if path.is_file():
        return path
    models = shipped()
    if str(source) in models:
        return models[str(source)]
    if path.is_dir():
        raise _unreadable(str(source), "is a folder, not a file")
    near = difflib.get_close_matches(str(source), models, n=1)
    hint = f"did you mean '{near[0]}'? " if near else ""
    raise ScenarioError(
        str(source),
        [
            Problem(
                "file",
                str(source),
                "is no file and no shipped scenario",
                f"{hint}give the path of a TOML file or one of: {', '.join(models)}",
            )
        ],
    )


def _unreadable(source: str, why: str) -> ScenarioError:
    return ScenarioError(
        source, [Problem("file", source, f"cannot be read: {why}", "give a TOML text file")]
    )


def _copy(data: Mapping[str, Any]) -> dict[str, Any]:
    return {k: _copy(v) if isinstance(v, Mapping) else v for k, v in data.items()}


def _override(data: dict[str, Any], item: str) -> Problem | None:
    """Apply one ``dotted.path=value`` in place, or say what is wrong with it."""
    keys, text = _split(item)
    if text is None:
        return Problem(
            "--set",
            item,
            "must read dotted.path=value, a key with dots in it in quotes",
            "write --set worker.keepalive=600, or --set 'tasks.profiles.\"my.task\".weight=2'",
        )
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()  # a bare word, such as fair
    node: Any = data
    for depth, key in enumerate(keys):
        where = ".".join(keys[:depth])
        place: Any = key
        if isinstance(node, list):
            if not key.isdigit() or int(key) >= len(node):
                rule = f"{where} has entries 0 to {len(node) - 1}"
                return Problem("--set", item, rule, "name one of them")
            place = int(key)
        elif not isinstance(node, dict):
            return Problem("--set", item, f"{where} is a value, not a table", "shorten the path")
        if depth == len(keys) - 1:
            node[place] = value
        else:
            node = node.setdefault(place, {}) if isinstance(node, dict) else node[place]
    return None


def _split(item: str) -> tuple[list[str], str | None]:
    """The keys of a dotted path, as TOML writes one, and what follows its "="; None: it is none."""
    keys: list[str] = []
    rest = item
    while match := _KEY.match(rest):
        keys.append(match[1] or match[2] or match[3])
        rest = rest[match.end() :]
        if match[4] == "=":
            return keys, rest
    return [], None


_BARE = re.compile(r"""[^."'=\s]+""")
#: A key, bare or in quotes, up to and with the dot or the "=" that follows.
_KEY = re.compile(r"""\s*(?:"([^"]+)"|'([^']+)'|([^."'=\s]+))\s*([.=])""")

_REMEDIES = {
    "greater_than": "give a value greater than {gt}",
    "greater_than_equal": "give a value of at least {ge}",
    "less_than_equal": "give a value of at most {le}",
    "missing": "add this field",
    "too_short": "give at least {min_length}",
    "finite_number": "give a finite number",
    "literal_error": "use one of {expected}",
    "union_tag_invalid": "use one of {expected_tags}",
    "union_tag_not_found": "add kind = 'batches', 'rate', 'poisson' or 'times'",
    "seconds": "write 0.5, or {{ kind = 'lognormal', mean = 0.5, sd = 0.1 }}; kinds: normal, "
    "lognormal, gamma, exponential, uniform, empirical",
    "bool_type": "write true or false",
    "bool_parsing": "write true or false",
}
_RULES = {
    "model_type": "must be a table",
    "dict_type": "must be a table",
    "tuple_type": "must be a list",
}
_TYPES = {
    "int": "write a whole number, such as 4",
    "float": "write a number, such as 1.5",
    "string": "write a text in quotes",
    "tuple": "write a list, such as [4, 2]",
    "dict": "write a table",
    "model": "write a table",
}
#: Tags that pydantic puts into an error's path for the chosen member of a union.
_TAGS = {"batches", "rate", "poisson", "times", "constant", "normal", "lognormal", "gamma"} | {
    "exponential",
    "uniform",
    "empirical",
}


def _problems(error: ValidationError) -> list[Problem]:
    """Everything wrong, less what only follows from something wrong inside it."""
    errors = error.errors()
    places = [e["loc"] for e in errors]
    return [
        _problem(e)
        for e in errors
        if e["type"] != "too_short"
        or not any(len(p) > len(e["loc"]) and p[: len(e["loc"])] == e["loc"] for p in places)
    ]


def _problem(error: Any) -> Problem:
    """A pydantic error in our words: dotted path, value, rule, remedy."""
    location: Sequence[str | int] = error["loc"]
    context: dict[str, Any] = error.get("ctx") or {}
    parts = [_quoted(str(part)) for i, part in enumerate(location) if not (i and part in _TAGS)]
    kind: str = error["type"]
    if kind == "extra_forbidden":
        rule, remedy = "there is no such field", _nearest(location)
    elif "remedy" in context:
        rule, remedy = error["msg"], context["remedy"]
    else:
        rule = _RULES.get(kind) or error["msg"][0].lower() + error["msg"][1:]
        remedy = _REMEDIES.get(kind) or _TYPES.get(kind.split("_")[0]) or "correct the value"
        remedy = remedy.format(**context)
    value = "(missing)" if kind == "missing" else _short(error["input"])
    return Problem(".".join(parts) or "scenario", value, rule, remedy)


def _quoted(key: str) -> str:
    """The key as a path for ``--set`` has it."""
    return key if _BARE.fullmatch(key) else f'"{key}"'


def _short(value: Any) -> str:
    if isinstance(value, BaseModel):
        value = value.model_dump(exclude_defaults=True)
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _nearest(location: Sequence[str | int]) -> str:
    """The remedy for an unknown field: the nearest known one, or the list of them."""
    fields = _fields(Scenario, location[:-1])
    near = difflib.get_close_matches(str(location[-1]), fields, n=1)
    if near:
        return f"did you mean '{near[0]}'?"
    return f"remove it, or use one of: {', '.join(fields)}" if fields else "remove it"


def _fields(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """Names of the fields of the table at ``location``, following pydantic's schema."""
    schema = model.model_json_schema()
    definitions = schema.get("$defs", {})
    node: dict[str, Any] = schema
    for part in location:
        node = _resolve(node, definitions)
        if part in node.get("properties", {}):
            node = node["properties"][part]
        elif isinstance(part, int):
            node = node.get("items", {})
        elif part in _TAGS:
            mapping = node.get("discriminator", {}).get("mapping", {})
            node = definitions.get(mapping.get(part, "").rpartition("/")[2], node)
        else:
            node = node.get("additionalProperties") or {}
    return list(_resolve(node, definitions).get("properties", {}))


def _resolve(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    for choice in node.get("anyOf", ()):  # a table that may be left out
        node = choice if "$ref" in choice else node
    reference = node.get("$ref")
    return definitions[reference.rpartition("/")[2]] if reference else node
