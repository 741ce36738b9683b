"""``validation/traces/traces.toml``: the recordings kept, what each is for, and how it was made."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from celerysim.errors import CelerysimError

FILE = "traces.toml"


class Group(BaseModel):
    """Recordings of one scenario: the folders ``run-1``, ``run-2``, ... of the folder ``name``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """Its folder."""
    what: str
    """What is recorded, and what for."""
    command: str
    """The command that records a run, without the folder it goes to."""
    misses: dict[str, str] = Field(default_factory=dict)
    """Figure to why its prediction misses, where it does."""

    def runs(self, folder: Path) -> list[Path]:
        """Its recordings' folders, in order."""
        return sorted((folder / self.name).glob("run-*"), key=lambda path: (len(path.name), path))


class _Catalogue(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    groups: tuple[Group, ...]


def load_catalogue(folder: Path) -> tuple[Group, ...]:
    """The groups of recordings in ``folder``.

    Raises:
        CelerysimError: there is no catalogue, it is wrong, or a group has no recording.
    """
    path = folder / FILE
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        groups = _Catalogue.model_validate(data).groups
    except OSError as error:
        raise CelerysimError(
            f"{path}: {error.strerror}. Remedy: run it in a checkout of celerysim, or name the "
            "folder that holds traces/traces.toml."
        ) from error
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise CelerysimError(f"{path}: {error}. Remedy: correct the file.") from error
    for group in groups:
        if not group.runs(folder):
            raise CelerysimError(
                f"{folder / group.name} has no recording run-1. Remedy: record it "
                f"({group.command}), or take the group out of {FILE}."
            )
    return groups
