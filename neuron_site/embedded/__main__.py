"""`python -m neuron_site.embedded`: the bundled servers by hand."""

import subprocess
import sys

from neuron_site.embedded import ensure, postgres, socket_folder, starting, stop, var_folder


def main() -> None:
    """`stop` ends servers that a killed Neuron left behind; `run pg_dump …` runs a program of PostgreSQL's on them."""
    match sys.argv[1:]:
        case ["stop"]:
            var = var_folder()
            with starting(var):
                stop(var)
        case ["run", ("pg_dump" | "pg_restore" | "psql") as program, *words]:
            ensure()
            where = ["-h", str(socket_folder(var_folder())), "-U", "postgres"]
            sys.exit(subprocess.call([str(postgres.binaries() / program), *where, *words]))
        case _:
            sys.exit("usage: python -m neuron_site.embedded stop | run (pg_dump|pg_restore|psql) …")


if __name__ == "__main__":
    main()
