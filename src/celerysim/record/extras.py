"""The packages of the extra ``celerysim[record]``: whether they are there, and which versions."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from celerysim._version import __version__
from celerysim.record.errors import MissingExtraError

_ALWAYS = ("celery", "kombu", "psutil")
_BY_POOL = {"gevent": ("gevent",), "eventlet": ("eventlet",)}
_NOTED = ("celery", "kombu", "billiard", "amqp", "vine", "gevent", "eventlet", "greenlet", "psutil")


def require(pool: str) -> None:
    """Make sure that a worker with this pool can run here.

    Raises:
        MissingExtraError: a package is missing; names all that are.
    """
    wanted = (*_ALWAYS, *_BY_POOL.get(pool, ()))
    missing = [name for name in wanted if not _installed(name)]
    if missing:
        raise MissingExtraError(
            f"recording needs {', '.join(missing)}, not installed here. "
            "Remedy: pip install 'celerysim[record]'."
        )


def _installed(name: str) -> bool:
    # Not importlib.util.find_spec: celery and kombu replace themselves in sys.modules by modules
    # without a spec.
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


def versions() -> dict[str, str]:
    """Versions of everything that takes part in a recording, the broker's excepted."""
    found = {"celerysim": __version__, "python": platform.python_version()}
    for name in _NOTED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
