"""Keys and organizations, below HTTP."""

import asyncio
from collections.abc import Iterator
from uuid import uuid4

import argon2
import pytest
from structlog.testing import capture_logs

from umbra_compute.db import Pool
from umbra_compute.errors import NodeNotFound, OrganizationNameTaken
from umbra_compute.model.caller import ApiScope
from umbra_compute.model.credentials import Key, KeyKind
from umbra_compute.ops import credentials, organizations
from umbra_compute.ops.hashing import Hasher


@pytest.fixture
def hasher() -> Iterator[Hasher]:
    hasher = Hasher(argon2.profiles.CHEAPEST)
    yield hasher
    hasher.close()


def test_a_key_is_read_as_it_was_made_and_nothing_else_is() -> None:
    for kind in KeyKind:
        key = Key.make(kind)
        assert Key.parse(key.text) == key
        assert key.kind is kind
        for wrong in (key.text[:-1], key.text + "a", key.text.upper(), key.text.replace("_", "-")):
            assert Key.parse(wrong) is None


def test_a_key_does_not_show_itself() -> None:
    key = Key.make(KeyKind.NODE)
    assert key.text not in repr(key)
    assert key.text.rpartition("_")[2] not in str(key)


async def test_a_prefix_that_is_taken_is_drawn_again(
    pool: Pool, hasher: Hasher, monkeypatch: pytest.MonkeyPatch
) -> None:
    organization, taken, key = await organizations.bootstrap(pool, hasher, "acme")
    fresh = Key.make(KeyKind.API)
    draws = [Key(key.prefix, key.prefix + "_" + "a" * 52), fresh]
    monkeypatch.setattr(Key, "make", lambda kind: draws.pop(0))
    made, text = await credentials.issue_first_api_key(
        pool, hasher, organization.id, name="second", scopes=[ApiScope.JOBS_READ]
    )
    assert (made.key_prefix, text, draws) == (fresh.prefix, fresh, [])
    found = await credentials.find_live(pool, key)
    assert found is not None
    assert found.id == taken.id


async def test_an_organization_comes_with_a_key_for_everything_or_not_at_all(
    pool: Pool, hasher: Hasher
) -> None:
    organization, api_key, _ = await organizations.bootstrap(pool, hasher, "acme")
    assert api_key.scopes == (ApiScope.ADMIN,)
    with pytest.raises(OrganizationNameTaken):
        await organizations.bootstrap(pool, hasher, "acme")
    assert await pool.fetchval("SELECT count(*) FROM api_keys") == 1
    assert await organizations.by_name(pool, "acme") == organization
    assert await organizations.by_name(pool, "Acme") is None


async def test_one_name_at_once_is_one_organization(pool: Pool, hasher: Hasher) -> None:
    made = await asyncio.gather(
        *(organizations.bootstrap(pool, hasher, "acme") for _ in range(8)), return_exceptions=True
    )
    assert sum(isinstance(one, OrganizationNameTaken) for one in made) == 7
    assert await pool.fetchval("SELECT count(*) FROM api_keys") == 1
    assert len(await organizations.every(pool)) == 1


async def test_what_is_logged_of_a_key_is_its_id(pool: Pool, hasher: Hasher) -> None:
    with capture_logs() as logged:
        organization, api_key, key = await organizations.bootstrap(pool, hasher, "acme")
        await credentials.revoke_api_key(pool, organization.id, api_key.id)
    assert [line["event"] for line in logged] == [
        "organization.created",
        "api_key.issued",
        "api_key.revoked",
    ]
    assert key.text.rpartition("_")[2] not in str(logged)


async def test_a_node_of_another_organization_gets_no_key(pool: Pool, hasher: Hasher) -> None:
    mine, theirs = [await organizations.create(pool, name) for name in ("mine", "theirs")]
    node_id = uuid4()
    await pool.execute(
        "INSERT INTO compute_nodes (id, organization_id, name) VALUES ($1, $2, 'desk')",
        *(node_id, theirs.id),
    )
    with pytest.raises(NodeNotFound):
        await credentials.issue_node_key(pool, hasher, mine.id, node_id)
    credential, key = await credentials.issue_node_key(pool, hasher, theirs.id, node_id)
    found = await credentials.find_live(pool, key)
    assert found is not None
    assert (found.id, found.expires_in_s) == (credential.id, None)
    assert found.identity.organization_id == theirs.id


async def test_two_revocations_at_once_are_one(pool: Pool, hasher: Hasher) -> None:
    organization, api_key, _ = await organizations.bootstrap(pool, hasher, "acme")
    before = await credentials.version(pool)
    revoked = [credentials.revoke_api_key(pool, organization.id, api_key.id) for _ in range(8)]
    await asyncio.gather(*revoked)
    assert await credentials.version(pool) == before + 1
