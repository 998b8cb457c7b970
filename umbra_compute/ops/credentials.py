"""Issuing, listing, revoking and looking up keys, of nodes and of people."""

from collections.abc import Collection, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, TypeVar
from uuid import UUID

import structlog

from umbra_compute.db import Pool, repeated
from umbra_compute.errors import (
    CredentialNotFound,
    KeyNotFound,
    NodeNotFound,
    NodeRetired,
    ScopeNotHeld,
)
from umbra_compute.ids import uuid7
from umbra_compute.model.caller import ApiIdentity, ApiScope, NodeScope
from umbra_compute.model.credentials import ApiKey, Key, KeyKind, NodeCredential, Verifiable
from umbra_compute.model.nodes import NodeStatus
from umbra_compute.ops.hashing import Hasher
from umbra_compute.store import api_keys, credentials

S = TypeVar("S", bound=StrEnum)

log = structlog.get_logger(__name__)

PREFIX_ATTEMPTS: Final = 5
"""Two prefixes of 60 bits hardly ever meet; five times in a row means that chance is broken."""


async def issue_node_key(
    pool: Pool,
    hasher: Hasher,
    organization_id: UUID,
    node_id: UUID,
    *,
    scopes: Collection[NodeScope] = tuple(NodeScope),
    agent_name: str | None = None,
    expires_in_s: float | None = None,
) -> tuple[NodeCredential, Key]:
    """Return a new credential of the node and its key, which is not kept. None: never expires.

    Raises NodeNotFound, NodeRetired.
    """
    for _ in range(PREFIX_ATTEMPTS):
        key = Key.make(KeyKind.NODE)
        key_hash = await hasher.hash(key.text)
        async with pool.acquire() as conn, conn.transaction():
            node = await credentials.lock_node(conn, organization_id, node_id)
            if node is None:
                raise NodeNotFound(node_id)
            name, status = node
            if status == NodeStatus.RETIRED:
                raise NodeRetired(name)
            credential = await credentials.insert(
                conn,
                uuid7(),
                node_id,
                agent_name,
                key.prefix,
                key_hash,
                _ordered(scopes, NodeScope),
                expires_in_s,
            )
        if credential is not None:
            log.info("node_key.issued", node_id=node_id, credential_id=credential.id)
            return credential, key
    raise AssertionError("every new prefix was taken")


async def issue_api_key(
    pool: Pool,
    hasher: Hasher,
    maker: ApiIdentity,
    *,
    name: str,
    scopes: Collection[ApiScope],
    expires_in_s: float | None = None,
) -> tuple[ApiKey, Key]:
    """Return a new key of the maker's organization, and its text, which is not kept.

    Raises ScopeNotHeld: nobody gives away more than they hold.
    """
    for scope in _ordered(scopes, ApiScope):
        if not maker.holds(scope):
            raise ScopeNotHeld(scope)
    return await issue_first_api_key(
        pool, hasher, maker.organization_id, name=name, scopes=scopes, expires_in_s=expires_in_s
    )


async def issue_first_api_key(
    pool: Pool,
    hasher: Hasher,
    organization_id: UUID,
    *,
    name: str,
    scopes: Collection[ApiScope],
    expires_in_s: float | None = None,
) -> tuple[ApiKey, Key]:
    """The same for whoever operates the database, who needs no key to make one."""
    for _ in range(PREFIX_ATTEMPTS):
        key = Key.make(KeyKind.API)
        key_hash = await hasher.hash(key.text)
        async with pool.acquire() as conn, conn.transaction():
            row = await api_keys.insert(
                conn,
                uuid7(),
                organization_id,
                name,
                key.prefix,
                key_hash,
                _ordered(scopes, ApiScope),
                expires_in_s,
            )
        if row is not None:
            log.info("api_key.issued", key_id=row.id, organization_id=organization_id)
            return row, key
    raise AssertionError("every new prefix was taken")


async def list_node_keys(
    pool: Pool,
    organization_id: UUID,
    node_id: UUID,
    *,
    after: tuple[datetime, UUID] | None = None,
    limit: int,
) -> list[NodeCredential]:
    """Return up to `limit` credentials, newest first, from behind (created_at, id) on.

    Raises NodeNotFound.
    """
    async with pool.acquire() as conn, conn.transaction(readonly=True):
        if not await credentials.node_exists(conn, organization_id, node_id):
            raise NodeNotFound(node_id)
        return await credentials.page(conn, node_id, after, limit)


async def list_api_keys(
    pool: Pool, organization_id: UUID, *, after: tuple[datetime, UUID] | None = None, limit: int
) -> list[ApiKey]:
    """Return up to `limit` keys, newest first, from behind (created_at, id) on."""
    async with pool.acquire() as conn:
        return await api_keys.page(conn, organization_id, after, limit)


@repeated
async def revoke_node_key(
    pool: Pool, organization_id: UUID, node_id: UUID, credential_id: UUID
) -> None:
    """End a credential: every controller refuses it within 2 s. Safe to repeat.

    Raises CredentialNotFound, also for one of another node or organization.
    """
    async with pool.acquire() as conn, conn.transaction():
        revoked = await credentials.revoke(conn, organization_id, node_id, credential_id)
        if revoked:
            await credentials.bump_version(conn)
        elif not await credentials.exists(conn, organization_id, node_id, credential_id):
            raise CredentialNotFound(credential_id)
    if revoked:
        log.info("node_key.revoked", node_id=node_id, credential_id=credential_id)


@repeated
async def revoke_api_key(pool: Pool, organization_id: UUID, key_id: UUID) -> None:
    """End a key: every controller refuses it within 2 s. Safe to repeat.

    The key that asks, and the last one with admin, may be ended too: a leaked key must go
    whichever it is, and whoever operates the database can make another.

    Raises KeyNotFound, also for one of another organization.
    """
    async with pool.acquire() as conn, conn.transaction():
        revoked = await api_keys.revoke(conn, organization_id, key_id)
        if revoked:
            await credentials.bump_version(conn)
        elif not await api_keys.exists(conn, organization_id, key_id):
            raise KeyNotFound(key_id)
    if revoked:
        log.info("api_key.revoked", key_id=key_id, organization_id=organization_id)


async def find_live(pool: Pool, key: Key) -> Verifiable | None:
    """Return the credential with the key's prefix, None if none is live. Verifies nothing."""
    async with pool.acquire() as conn:
        if key.kind is KeyKind.NODE:
            return await credentials.find_live(conn, key.prefix)
        return await api_keys.find_live(conn, key.prefix)


async def version(pool: Pool) -> int:
    """Return a number that grows with each revocation."""
    async with pool.acquire() as conn:
        return await credentials.version(conn)


async def still_live(
    pool: Pool, node_credential_ids: Sequence[UUID], key_ids: Sequence[UUID]
) -> set[UUID]:
    """Return those of the ids whose keys are still good."""
    async with pool.acquire() as conn:
        of_nodes = await credentials.still_live(conn, node_credential_ids)
        return of_nodes | await api_keys.still_live(conn, key_ids)


@repeated
async def note_used(
    pool: Pool, node_credential_ids: Sequence[UUID], key_ids: Sequence[UUID]
) -> None:
    """Set last_used_at, to the minute, of these and no others."""
    async with pool.acquire() as conn, conn.transaction():
        await credentials.note_used(conn, node_credential_ids)
        await api_keys.note_used(conn, key_ids)


def _ordered(scopes: Collection[S], words: type[S]) -> list[S]:
    """Each once, in the order of the documentation."""
    return [scope for scope in words if scope in scopes]
