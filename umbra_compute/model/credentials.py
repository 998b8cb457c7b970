"""Keys as text, and what is kept of them."""

import base64
import re
import secrets
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

import attrs

from umbra_compute.model.caller import ApiIdentity, ApiScope, NodeIdentity, NodeScope

_SECRET_BYTES: Final = 32
"""256 bits: nobody guesses it, so the hash beside it needs to be one-way, not slow."""

_PREFIX_BYTES: Final = 8  # of which 12 characters of base32 show 60 bits
_PREFIX_CHARS: Final = 12
_SHAPE: Final = re.compile(r"(um[nk]_[a-z2-7]{12})_[a-z2-7]{52}")


class KeyKind(StrEnum):
    """What a key begins with."""

    NODE = "umn"
    API = "umk"


@attrs.frozen
class Key:
    """A whole key. It is shown once, and lives no longer than the request that carries it."""

    prefix: str  # public: the row is found by it
    text: str = attrs.field(repr=False)

    @property
    def kind(self) -> KeyKind:
        return KeyKind(self.prefix[:3])

    @classmethod
    def make(cls, kind: KeyKind) -> "Key":
        prefix = f"{kind}_{_base32(_PREFIX_BYTES)[:_PREFIX_CHARS]}"
        return cls(prefix, f"{prefix}_{_base32(_SECRET_BYTES)}")

    @classmethod
    def parse(cls, text: str) -> "Key | None":
        """Return the key that `text` spells, None if it is none of ours."""
        shape = _SHAPE.fullmatch(text)
        return None if shape is None else cls(shape[1], text)


def _base32(count: int) -> str:
    return base64.b32encode(secrets.token_bytes(count)).decode().rstrip("=").lower()


@attrs.frozen(kw_only=True)
class Verifiable:
    """A live credential, as it is when a key with its prefix comes in."""

    identity: NodeIdentity | ApiIdentity
    key_hash: str = attrs.field(repr=False)
    expires_in_s: float | None
    version: int  # of all credentials, in the same snapshot

    @property
    def id(self) -> UUID:
        return credential_id(self.identity)


def credential_id(identity: NodeIdentity | ApiIdentity) -> UUID:
    return identity.credential_id if isinstance(identity, NodeIdentity) else identity.key_id


@attrs.frozen(kw_only=True)
class NodeCredential:
    """A node's credential as the API shows it."""

    id: UUID
    node_id: UUID
    agent_name: str | None
    key_prefix: str
    scopes: tuple[NodeScope, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


@attrs.frozen(kw_only=True)
class ApiKey:
    """An API key as the API shows it."""

    id: UUID
    name: str
    key_prefix: str
    scopes: tuple[ApiScope, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


@attrs.frozen(kw_only=True)
class Organization:
    """A tenant."""

    id: UUID
    name: str
    created_at: datetime
