#!/usr/bin/env python
"""Django's command line, on the running servers or on bundled ones started for the command's own duration."""

import os
import sys

from neuron_site import embedded

# What neither reads nor writes data must not wait for servers.
WITHOUT_SERVERS = {"help", "--help", "-h", "version", "--version", "check", "collectstatic", "spectacular"}


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "neuron_site.settings")
    command = sys.argv[1] if len(sys.argv) > 1 else "help"
    try:
        embedded.ensure(servers=command not in WITHOUT_SERVERS)
    except embedded.EmbeddedError as error:
        sys.exit(f"neuron: {error}")

    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"neuron: {error}")


if __name__ == "__main__":
    main()
