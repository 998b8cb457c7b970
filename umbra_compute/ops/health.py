"""What `doctor` looks at in the database itself."""

from typing import Any

from umbra_compute.db import Pool
from umbra_compute.store import health, sweeps


async def examine(pool: Pool) -> dict[str, Any]:
    """Return the server's version, the session that holds dead rows alive, and the sweeps' ages."""
    async with pool.acquire() as conn:
        oldest = await health.horizon(conn)
        rows = await health.dead_rows(conn)
        rounds = await sweeps.succeeded(conn)
        version = conn.get_server_version()
    return {
        "version": f"{version.major}.{version.micro}",  # 18.6 is (18, 0, 6) to the driver
        "horizon": None if oldest is None else dict(oldest),
        "jobs": None if rows is None else dict(rows),
        "sweeps": {row["name"]: row["age_s"] for row in rounds},
    }
