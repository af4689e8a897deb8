"""A pytest plugin: the bundled servers run before Django reads its settings, on a folder of the tests' own."""

import os

from neuron_site import embedded

os.environ.setdefault("NEURON_VAR", str(embedded.BASE_DIR / "var" / "test"))
# What a developer's shell says about models and mail must not reach the tests.
for name in (
    "NEURON_MODEL",
    "NEURON_MODEL_URL",
    "NEURON_URL",
    "ENGRAM_URL",
    "ENGRAM_OWNER",
    "EMAIL_URL",
    "DEBUG",
    "PORT",
):
    os.environ.pop(name, None)
# The tests' data may go with the machine: commits need not wait for the disk.
os.environ.setdefault("PGOPTIONS", "-c synchronous_commit=off")
embedded.ensure()
