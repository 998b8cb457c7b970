"""node_credentials, and the one row by which controllers notice revocations."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import asyncpg

from umbra_compute.db import Conn
from umbra_compute.model.caller import NodeIdentity, NodeScope
from umbra_compute.model.credentials import NodeCredential, Verifiable

VERSION = """/* credentials.version */
SELECT value FROM credential_version
"""

BUMP_VERSION = """/* credentials.bump_version */
UPDATE credential_version SET value = value + 1
"""

# Revoked, expired, of a retired node: not there, as if the prefix had never been.
FIND_LIVE = """/* credentials.find_live */
SELECT c.id AS credential_id, c.node_id, n.organization_id, c.scopes, c.key_hash,
       extract(epoch FROM c.expires_at - statement_timestamp())::float8 AS expires_in_s,
       v.value AS version
  FROM node_credentials AS c
  JOIN compute_nodes AS n ON n.id = c.node_id
 CROSS JOIN credential_version AS v
 WHERE c.key_prefix = $1
   AND c.revoked_at IS NULL
   AND (c.expires_at IS NULL OR c.expires_at > statement_timestamp())
   AND n.status <> 'retired'
"""

STILL_LIVE = """/* credentials.still_live */
SELECT c.id
  FROM node_credentials AS c
  JOIN compute_nodes AS n ON n.id = c.node_id
 WHERE c.id = ANY($1::uuid[])
   AND c.revoked_at IS NULL
   AND (c.expires_at IS NULL OR c.expires_at > statement_timestamp())
   AND n.status <> 'retired'
"""

# A minute's grain, so that ten thousand nodes do not rewrite ten thousand rows every few seconds.
NOTE_USED = """/* credentials.note_used */
UPDATE node_credentials SET last_used_at = statement_timestamp()
 WHERE id = ANY(ARRAY(
       SELECT id FROM node_credentials
        WHERE id = ANY($1::uuid[])
          AND (last_used_at IS NULL OR last_used_at < statement_timestamp() - interval '1 minute')
        ORDER BY id
          FOR UPDATE SKIP LOCKED))
"""

NODE_EXISTS = """/* credentials.node_exists */
SELECT EXISTS (SELECT FROM compute_nodes WHERE organization_id = $1 AND id = $2)
"""

# Not for a retired node; the row lock keeps it from being retired meanwhile.
LOCK_NODE = """/* credentials.lock_node */
SELECT name, status FROM compute_nodes WHERE organization_id = $1 AND id = $2 FOR SHARE
"""

INSERT = """/* credentials.insert */
INSERT INTO node_credentials (id, node_id, agent_name, key_prefix, key_hash, scopes, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, statement_timestamp() + make_interval(secs => $7))
    ON CONFLICT (key_prefix) DO NOTHING
RETURNING id, node_id, agent_name, key_prefix, scopes, created_at, expires_at, revoked_at,
          last_used_at
"""

PAGE = """/* credentials.page */
SELECT id, node_id, agent_name, key_prefix, scopes, created_at, expires_at, revoked_at, last_used_at
  FROM node_credentials
 WHERE node_id = $1
   AND ($2::timestamptz IS NULL OR (created_at, id) < ($2, $3::uuid))
 ORDER BY created_at DESC, id DESC
 LIMIT $4
"""

REVOKE = """/* credentials.revoke */
UPDATE node_credentials AS c SET revoked_at = statement_timestamp()
  FROM compute_nodes AS n
 WHERE c.id = $3 AND c.node_id = $2 AND n.id = c.node_id AND n.organization_id = $1
   AND c.revoked_at IS NULL
RETURNING c.id
"""

EXISTS = """/* credentials.exists */
SELECT EXISTS (
    SELECT FROM node_credentials AS c JOIN compute_nodes AS n ON n.id = c.node_id
     WHERE c.id = $3 AND c.node_id = $2 AND n.organization_id = $1)
"""


async def version(conn: Conn) -> int:
    """Return a number that grows with each revocation of any key, node's or API's."""
    value = await conn.fetchval(VERSION)
    if value is None:
        raise AssertionError("credential_version has no row")
    return int(value)


async def bump_version(conn: Conn) -> None:
    """Let every controller look again. Call it last: the row is one for all organizations."""
    if await conn.execute(BUMP_VERSION) != "UPDATE 1":
        raise AssertionError("credential_version has no row")


async def find_live(conn: Conn, key_prefix: str) -> Verifiable | None:
    row = await conn.fetchrow(FIND_LIVE, key_prefix)
    if row is None:
        return None
    return Verifiable(
        identity=NodeIdentity(
            organization_id=row["organization_id"],
            node_id=row["node_id"],
            credential_id=row["credential_id"],
            scopes=frozenset(map(NodeScope, row["scopes"])),
        ),
        key_hash=row["key_hash"],
        expires_in_s=row["expires_in_s"],
        version=row["version"],
    )


async def still_live(conn: Conn, ids: Sequence[UUID]) -> set[UUID]:
    """Return those of `ids` whose keys are still good."""
    return {row["id"] for row in await conn.fetch(STILL_LIVE, ids)}


async def note_used(conn: Conn, ids: Sequence[UUID]) -> None:
    """Set when they were last used. Rows that somebody else holds are left for next time."""
    await conn.execute(NOTE_USED, ids)


async def node_exists(conn: Conn, organization_id: UUID, node_id: UUID) -> bool:
    return bool(await conn.fetchval(NODE_EXISTS, organization_id, node_id))


async def lock_node(conn: Conn, organization_id: UUID, node_id: UUID) -> tuple[str, str] | None:
    """Return the node's (name, status), which stay so to the end of the transaction."""
    row = await conn.fetchrow(LOCK_NODE, organization_id, node_id)
    return None if row is None else (row["name"], row["status"])


async def insert(
    conn: Conn,
    credential_id: UUID,
    node_id: UUID,
    agent_name: str | None,
    key_prefix: str,
    key_hash: str,
    scopes: Sequence[NodeScope],
    expires_in_s: float | None,
) -> NodeCredential | None:
    """Return the new credential, None if its prefix is taken."""
    row = await conn.fetchrow(
        INSERT, credential_id, node_id, agent_name, key_prefix, key_hash, scopes, expires_in_s
    )
    return None if row is None else _credential(row)


async def page(
    conn: Conn, node_id: UUID, after: tuple[datetime, UUID] | None, limit: int
) -> list[NodeCredential]:
    """Return up to `limit` credentials, newest first, from behind (created_at, id) on."""
    at, credential_id = after if after is not None else (None, None)
    return [_credential(row) for row in await conn.fetch(PAGE, node_id, at, credential_id, limit)]


async def revoke(conn: Conn, organization_id: UUID, node_id: UUID, credential_id: UUID) -> bool:
    """Return False if there is none such that is not revoked."""
    return await conn.fetchval(REVOKE, organization_id, node_id, credential_id) is not None


async def exists(conn: Conn, organization_id: UUID, node_id: UUID, credential_id: UUID) -> bool:
    return bool(await conn.fetchval(EXISTS, organization_id, node_id, credential_id))


def _credential(row: asyncpg.Record) -> NodeCredential:
    return NodeCredential(**{**row, "scopes": tuple(map(NodeScope, row["scopes"]))})
