"""Writing files whole: at any moment a file is the old one or the new one, never half of one."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from celerysim.errors import CelerysimError
from celerysim.sweep.statistics import label, unit_of

#: Rows turned into text at a time.
BLOCK = 50_000


def write_whole(path: Path, data: bytes) -> None:
    """Replace (or make) the file ``path``; the data is on the disk before the name is."""
    fresh = path.with_name(f".{path.name}.new")
    with open(fresh, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)


def write_csv(rows: NDArray[np.void], path: Path) -> None:
    """A structured array as CSV: one line a row, units in the header, floats to the last digit.

    What is not known (NaN) is empty.
    """
    names = list(rows.dtype.names or ())
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(label, names))
    for begin in range(0, len(rows), BLOCK):  # plain values take much more memory than rows
        block = rows[begin : begin + BLOCK].tolist()
        writer.writerows(["" if value != value else value for value in row] for row in block)
    write_whole(path, text.getvalue().encode())


def has_parquet() -> bool:
    """Whether Parquet can be written here."""
    return find_spec("pyarrow") is not None


def write_parquet(rows: NDArray[np.void], path: Path, provenance: Mapping[str, Any]) -> None:
    """A structured array as Parquet, with each column's unit and the provenance as metadata.

    Raises:
        CelerysimError: pyarrow is missing.
    """
    if not has_parquet():
        raise CelerysimError(
            "Parquet needs pyarrow. Remedy: pip install 'celerysim[parquet]', or write CSV."
        )
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    names: Sequence[str] = rows.dtype.names or ()
    arrays = [arrow.array(rows[name].copy()) for name in names]  # arrow wants them contiguous
    fields: Iterable[Any] = (
        arrow.field(name, array.type, metadata={"unit": unit_of(name)})
        for name, array in zip(names, arrays, strict=True)
    )
    schema = arrow.schema(list(fields), metadata={"celerysim": json.dumps(dict(provenance))})
    sink = io.BytesIO()
    parquet.write_table(arrow.Table.from_arrays(arrays, schema=schema), sink)
    write_whole(path, sink.getvalue())
