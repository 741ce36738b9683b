"""What all models of a scenario share: frozen, unknown fields refused, common types."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

Second = Annotated[float, Field(allow_inf_nan=False, strict=True)]
Duration = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
Share = Annotated[float, Field(ge=0, le=1, strict=True)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
Count = Annotated[int, Field(ge=1, strict=True)]


class Model(BaseModel):
    """A frozen table that refuses unknown fields; the text beneath a field documents it."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def refuse(rule: str, remedy: str) -> PydanticCustomError:
    """An error of a rule of ours, with its remedy."""
    return PydanticCustomError("celerysim", rule, {"remedy": remedy})
