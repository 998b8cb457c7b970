"""Making tenants. Only whoever operates the database does this; no route leads here."""

import structlog

from umbra_compute.db import Pool, repeated
from umbra_compute.errors import OrganizationNameTaken
from umbra_compute.ids import uuid7
from umbra_compute.model.caller import ApiScope
from umbra_compute.model.credentials import ApiKey, Key, KeyKind, Organization
from umbra_compute.ops.hashing import Hasher
from umbra_compute.store import api_keys, organizations

log = structlog.get_logger(__name__)


async def create(pool: Pool, name: str) -> Organization:
    """Return a new organization. Raises OrganizationNameTaken."""
    async with pool.acquire() as conn, conn.transaction():
        organization = await organizations.insert(conn, uuid7(), name)
        if organization is None:
            raise OrganizationNameTaken(name)
    log.info("organization.created", organization_id=organization.id)
    return organization


async def by_name(pool: Pool, name: str) -> Organization | None:
    async with pool.acquire() as conn:
        return await organizations.by_name(conn, name)


async def every(pool: Pool) -> list[Organization]:
    """Return all organizations by name."""
    async with pool.acquire() as conn:
        return await organizations.every(conn)


async def bootstrap(pool: Pool, hasher: Hasher, name: str) -> tuple[Organization, ApiKey, Key]:
    """Make an organization together with its first key, which may do everything.

    One transaction: an organization without a key would be taken by name and of no use.
    Raises OrganizationNameTaken.
    """
    key = Key.make(KeyKind.API)
    key_hash = await hasher.hash(key.text)
    return await _bootstrap(pool, name, key, key_hash)


@repeated
async def _bootstrap(
    pool: Pool, name: str, key: Key, key_hash: str
) -> tuple[Organization, ApiKey, Key]:
    async with pool.acquire() as conn, conn.transaction():
        organization = await organizations.insert(conn, uuid7(), name)
        if organization is None:
            raise OrganizationNameTaken(name)
        scopes = [ApiScope.ADMIN]
        api_key = await api_keys.insert(
            conn, uuid7(), organization.id, "admin", key.prefix, key_hash, scopes, None
        )
        if api_key is None:
            raise AssertionError("the first key's prefix was taken: chance is broken")
    log.info("organization.created", organization_id=organization.id)
    log.info("api_key.issued", key_id=api_key.id, organization_id=organization.id)
    return organization, api_key, key
