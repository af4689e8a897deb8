"""What every benchmark needs: the machine's description, percentiles, a database of its own."""

import contextlib
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def percentile(values: list[float], share: float) -> float:
    """The value below which `share` (0–1) of the values lie, by nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def machine() -> str:
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"


@contextlib.contextmanager
def scratch_database() -> Iterator[None]:
    """Django on a freshly migrated database of its own on the bundled server, dropped afterwards."""
    os.environ.setdefault("NEURON_VAR", str(ROOT / "var" / "bench"))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "neuron_site.settings")
    from neuron_site import embedded

    embedded.ensure()
    import django

    django.setup()
    from django.test.utils import setup_databases, teardown_databases

    old = setup_databases(verbosity=0, interactive=False)
    try:
        yield
    finally:
        teardown_databases(old, verbosity=0)


def without_servers() -> None:
    """Django set up for its classes alone; the servers are those of the installations that a benchmark starts."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "neuron_site.settings")
    from neuron_site import embedded

    embedded.ensure(servers=False)
    import django

    django.setup()
