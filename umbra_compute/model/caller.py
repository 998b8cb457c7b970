"""Who is calling. It comes from the key, never from the request."""

from enum import StrEnum
from uuid import UUID

import attrs


class NodeScope(StrEnum):
    """What a node's key may do (SPEC §3)."""

    READ = "compute:read"
    HEARTBEAT = "compute:heartbeat"
    CLAIM = "compute:claim"
    COMPLETE = "compute:complete"


class ApiScope(StrEnum):
    """What a key for people and programs may do (SPEC §3). `admin` implies the others."""

    JOBS_READ = "jobs:read"
    JOBS_WRITE = "jobs:write"
    NODES_READ = "nodes:read"
    NODES_WRITE = "nodes:write"
    MODELS_WRITE = "models:write"
    KEYS_WRITE = "keys:write"
    ADMIN = "admin"


@attrs.frozen(kw_only=True)
class NodeIdentity:
    """A node, by one of its credentials."""

    organization_id: UUID
    node_id: UUID
    credential_id: UUID
    scopes: frozenset[NodeScope]


@attrs.frozen(kw_only=True)
class ApiIdentity:
    """A person or a program of one organization, by an API key."""

    organization_id: UUID
    key_id: UUID
    key_name: str
    scopes: frozenset[ApiScope]

    def holds(self, scope: ApiScope) -> bool:
        return scope in self.scopes or ApiScope.ADMIN in self.scopes
