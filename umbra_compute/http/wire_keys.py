"""What the routes for keys take and give."""

from typing import Annotated, Self
from uuid import UUID

import msgspec

from umbra_compute.http import wire
from umbra_compute.model.caller import ApiScope, NodeScope
from umbra_compute.model.credentials import ApiKey, Key, NodeCredential


class NewNodeKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    agent_name: wire.Name | None = None
    scopes: Annotated[frozenset[NodeScope], msgspec.Meta(min_length=1)] = frozenset(NodeScope)
    expires_in_s: wire.ExpirySeconds | None = None


class NewApiKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: wire.Name
    scopes: Annotated[frozenset[ApiScope], msgspec.Meta(min_length=1)]
    expires_in_s: wire.ExpirySeconds | None = None


class Page(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    limit: wire.PageLimit = 50
    cursor: str | None = None


class NodeKeyShown(msgspec.Struct, frozen=True, kw_only=True):
    """A credential as lists show it. `node_key` is in the answer that made it and nowhere else."""

    id: UUID
    node_id: UUID
    agent_name: str | None
    key_prefix: str
    scopes: tuple[NodeScope, ...]
    created_at: str | None
    expires_at: str | None
    revoked_at: str | None
    last_used_at: str | None
    node_key: str | msgspec.UnsetType = msgspec.UNSET

    @classmethod
    def of(cls, credential: NodeCredential, key: Key | None = None) -> Self:
        return cls(
            id=credential.id,
            node_id=credential.node_id,
            agent_name=credential.agent_name,
            key_prefix=credential.key_prefix,
            scopes=credential.scopes,
            created_at=wire.time(credential.created_at),
            expires_at=wire.time(credential.expires_at),
            revoked_at=wire.time(credential.revoked_at),
            last_used_at=wire.time(credential.last_used_at),
            node_key=msgspec.UNSET if key is None else key.text,
        )


class ApiKeyShown(msgspec.Struct, frozen=True, kw_only=True):
    """A key as lists show it. `api_key` is in the answer that made it and nowhere else."""

    id: UUID
    name: str
    key_prefix: str
    scopes: tuple[ApiScope, ...]
    created_at: str | None
    expires_at: str | None
    revoked_at: str | None
    last_used_at: str | None
    api_key: str | msgspec.UnsetType = msgspec.UNSET

    @classmethod
    def of(cls, api_key: ApiKey, key: Key | None = None) -> Self:
        return cls(
            id=api_key.id,
            name=api_key.name,
            key_prefix=api_key.key_prefix,
            scopes=api_key.scopes,
            created_at=wire.time(api_key.created_at),
            expires_at=wire.time(api_key.expires_at),
            revoked_at=wire.time(api_key.revoked_at),
            last_used_at=wire.time(api_key.last_used_at),
            api_key=msgspec.UNSET if key is None else key.text,
        )
