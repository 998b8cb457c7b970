"""organizations: the tenants."""

from uuid import UUID

from umbra_compute.db import Conn
from umbra_compute.model.credentials import Organization

INSERT = """/* organizations.insert */
INSERT INTO organizations (id, name) VALUES ($1, $2)
    ON CONFLICT (name) DO NOTHING
RETURNING id, name, created_at
"""

BY_NAME = """/* organizations.by_name */
SELECT id, name, created_at FROM organizations WHERE name = $1
"""

EVERY = """/* organizations.every */
SELECT id, name, created_at FROM organizations ORDER BY name
"""


async def insert(conn: Conn, organization_id: UUID, name: str) -> Organization | None:
    """Return the new organization, None if the name is taken."""
    row = await conn.fetchrow(INSERT, organization_id, name)
    return None if row is None else Organization(**row)


async def by_name(conn: Conn, name: str) -> Organization | None:
    row = await conn.fetchrow(BY_NAME, name)
    return None if row is None else Organization(**row)


async def every(conn: Conn) -> list[Organization]:
    """Return all organizations by name. There are few: each is made by hand."""
    return [Organization(**row) for row in await conn.fetch(EVERY)]
