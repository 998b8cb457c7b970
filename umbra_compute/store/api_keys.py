"""api_keys: the keys of people and programs."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import asyncpg

from umbra_compute.db import Conn
from umbra_compute.model.caller import ApiIdentity, ApiScope
from umbra_compute.model.credentials import ApiKey, Verifiable

# Revoked or expired: not there, as if the prefix had never been.
FIND_LIVE = """/* api_keys.find_live */
SELECT k.id, k.organization_id, k.name, k.scopes, k.key_hash,
       extract(epoch FROM k.expires_at - statement_timestamp())::float8 AS expires_in_s,
       v.value AS version
  FROM api_keys AS k CROSS JOIN credential_version AS v
 WHERE k.key_prefix = $1
   AND k.revoked_at IS NULL
   AND (k.expires_at IS NULL OR k.expires_at > statement_timestamp())
"""

STILL_LIVE = """/* api_keys.still_live */
SELECT id
  FROM api_keys
 WHERE id = ANY($1::uuid[])
   AND revoked_at IS NULL
   AND (expires_at IS NULL OR expires_at > statement_timestamp())
"""

# A minute's grain, as for node_credentials.
NOTE_USED = """/* api_keys.note_used */
UPDATE api_keys SET last_used_at = statement_timestamp()
 WHERE id = ANY(ARRAY(
       SELECT id FROM api_keys
        WHERE id = ANY($1::uuid[])
          AND (last_used_at IS NULL OR last_used_at < statement_timestamp() - interval '1 minute')
        ORDER BY id
          FOR UPDATE SKIP LOCKED))
"""

INSERT = """/* api_keys.insert */
INSERT INTO api_keys (id, organization_id, name, key_prefix, key_hash, scopes, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, statement_timestamp() + make_interval(secs => $7))
    ON CONFLICT (key_prefix) DO NOTHING
RETURNING id, name, key_prefix, scopes, created_at, expires_at, revoked_at, last_used_at
"""

PAGE = """/* api_keys.page */
SELECT id, name, key_prefix, scopes, created_at, expires_at, revoked_at, last_used_at
  FROM api_keys
 WHERE organization_id = $1
   AND ($2::timestamptz IS NULL OR (created_at, id) < ($2, $3::uuid))
 ORDER BY created_at DESC, id DESC
 LIMIT $4
"""

REVOKE = """/* api_keys.revoke */
UPDATE api_keys SET revoked_at = statement_timestamp()
 WHERE organization_id = $1 AND id = $2 AND revoked_at IS NULL
RETURNING id
"""

EXISTS = """/* api_keys.exists */
SELECT EXISTS (SELECT FROM api_keys WHERE organization_id = $1 AND id = $2)
"""


async def find_live(conn: Conn, key_prefix: str) -> Verifiable | None:
    row = await conn.fetchrow(FIND_LIVE, key_prefix)
    if row is None:
        return None
    return Verifiable(
        identity=ApiIdentity(
            organization_id=row["organization_id"],
            key_id=row["id"],
            key_name=row["name"],
            scopes=frozenset(map(ApiScope, row["scopes"])),
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


async def insert(
    conn: Conn,
    key_id: UUID,
    organization_id: UUID,
    name: str,
    key_prefix: str,
    key_hash: str,
    scopes: Sequence[ApiScope],
    expires_in_s: float | None,
) -> ApiKey | None:
    """Return the new key, None if its prefix is taken."""
    row = await conn.fetchrow(
        INSERT, key_id, organization_id, name, key_prefix, key_hash, scopes, expires_in_s
    )
    return None if row is None else _key(row)


async def page(
    conn: Conn, organization_id: UUID, after: tuple[datetime, UUID] | None, limit: int
) -> list[ApiKey]:
    """Return up to `limit` keys, newest first, from behind (created_at, id) on."""
    at, key_id = after if after is not None else (None, None)
    return [_key(row) for row in await conn.fetch(PAGE, organization_id, at, key_id, limit)]


async def revoke(conn: Conn, organization_id: UUID, key_id: UUID) -> bool:
    """Return False if there is none such that is not revoked."""
    return await conn.fetchval(REVOKE, organization_id, key_id) is not None


async def exists(conn: Conn, organization_id: UUID, key_id: UUID) -> bool:
    return bool(await conn.fetchval(EXISTS, organization_id, key_id))


def _key(row: asyncpg.Record) -> ApiKey:
    return ApiKey(**{**row, "scopes": tuple(map(ApiScope, row["scopes"]))})
