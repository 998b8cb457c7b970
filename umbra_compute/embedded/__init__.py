"""A PostgreSQL of the controller's own, from the programs in a wheel.

    data_dir/
      postgres/          the database cluster, for the server's eyes only
      run/               its socket, the only way in
      programs-18.6.3/   the wheel's programs, where the server may not read the wheel itself
      lock               who uses this folder
      start.log          what the server said before it opened its own log, postgres/log

No TCP listener. As root the server drops to another account. It ends with the process that
started it, whatever ends that: docs/decisions/0001-embedded-postgresql.md.
"""

from umbra_compute.embedded.lock import FolderInUse
from umbra_compute.embedded.server import Server, database, find_running, start

__all__ = ["FolderInUse", "Server", "database", "find_running", "start"]
