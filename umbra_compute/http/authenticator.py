"""From a key to who is calling, with argon2 paid once per key and process.

A verified key is remembered under a BLAKE2 digest keyed with a secret of this process. What is
remembered counts only while credential_version, which grows with each revocation, was seen
unchanged less than RECHECK_S ago; after a change every remembered credential is looked up again.
"""

import asyncio
import hashlib
import secrets
import time
from collections import OrderedDict
from typing import Final
from uuid import UUID
from weakref import WeakValueDictionary

import asyncpg
import attrs
import structlog

from umbra_compute.db import AWAY, Pool
from umbra_compute.errors import DatabaseUnavailable, Unauthorized
from umbra_compute.http.attempts import Attempts
from umbra_compute.model.caller import ApiIdentity, NodeIdentity
from umbra_compute.model.credentials import Key, credential_id
from umbra_compute.ops import credentials
from umbra_compute.ops.hashing import Hasher

log = structlog.get_logger(__name__)

RECHECK_S: Final = 1.0
"""Age from which what is remembered is looked at again, by one request for all."""

TRUSTED_S: Final = 2.0
"""Beyond this age nothing is trusted: a revoked key is refused within 2 s (S12). A database that
takes the second between the two for one row counts as away."""

USED_EVERY_S: Final = 10.0
"""How often last_used_at is written, for all keys that were used meanwhile."""

REMEMBERED: Final = 50_000
"""Keys kept, 0.5 kB each; beyond that the one used longest ago is verified anew."""


@attrs.frozen
class _Known:
    identity: NodeIdentity | ApiIdentity
    version: int  # at which it was known to be good
    ends_at: float | None  # on the clock of this process, which only measures


class Authenticator:
    """One per application."""

    def __init__(self, pool: Pool, hasher: Hasher) -> None:
        self._pool = pool
        self._hasher = hasher
        self._secret = secrets.token_bytes(32)
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self._version: int | None = None
        self._seen_at = float("-inf")
        self._looks = 0
        self._looking = asyncio.Lock()
        self._verifying: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._attempts = Attempts()
        self._used: dict[UUID, type[NodeIdentity | ApiIdentity]] = {}

    @property
    def known(self) -> int:
        """How many keys are remembered."""
        return len(self._known)

    async def identify(self, text: str, address: str) -> NodeIdentity | ApiIdentity:
        """Return whose key `text` is.

        Raises Unauthorized for a key that is none, unknown, wrong, revoked, expired or of a
        retired node; RateLimited after too many wrong secrets; DatabaseUnavailable when it
        cannot be known whether the key was revoked.
        """
        key = Key.parse(text)
        if key is None:
            raise Unauthorized
        digest = hashlib.blake2b(text.encode(), key=self._secret, digest_size=32).digest()
        await self._refresh()
        known = self._recall(digest)
        if known is None:
            known = await self._verify(key, digest, address)
        self._used[credential_id(known.identity)] = type(known.identity)
        return known.identity

    async def note_used(self) -> None:
        """Write last_used_at for the keys used since the last call."""
        used = dict(self._used)
        if not used:
            return
        nodes = [key for key, kind in used.items() if kind is NodeIdentity]
        others = [key for key, kind in used.items() if kind is ApiIdentity]
        await credentials.note_used(self._pool, nodes, others)
        for key in used:
            del self._used[key]

    async def keep_noting(self) -> None:
        """Call note_used for ever. What cannot be written now is written with the next batch."""
        while True:
            await asyncio.sleep(USED_EVERY_S)
            try:
                await self.note_used()
            except (*AWAY, asyncpg.PostgresError) as exc:
                log.warning("keys_used.kept", keys=len(self._used), error=type(exc).__name__)

    def _recall(self, digest: bytes) -> _Known | None:
        known = self._known.get(digest)
        if known is None:
            return None
        ended = known.ends_at is not None and known.ends_at <= time.monotonic()
        # Older than the version last seen: a key was revoked while this one was verified.
        if ended or self._version is None or known.version < self._version:
            del self._known[digest]
            return None
        self._known.move_to_end(digest)
        return known

    async def _verify(self, key: Key, digest: bytes, address: str) -> _Known:
        place = (key.prefix, address)
        lock = self._verifying.setdefault(place, asyncio.Lock())
        async with lock:  # a thousand requests with one key verify it once
            known = self._recall(digest)
            if known is not None:
                return known
            self._attempts.check(place, time.monotonic())
            asked_at = time.monotonic()
            found = await credentials.find_live(self._pool, key)
            if found is None:
                raise Unauthorized  # without argon2: prefixes are public, there is nothing to hide
            if not await self._hasher.verify(found.key_hash, key.text):
                self._attempts.failed(place, time.monotonic())
                log.warning("key.refused", key_prefix=key.prefix, address=address)
                raise Unauthorized
            ends_at = None if found.expires_in_s is None else asked_at + found.expires_in_s
            known = _Known(found.identity, found.version, ends_at)
            self._known[digest] = known
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
            return known

    async def _refresh(self) -> None:
        """Make sure that what is remembered was true less than TRUSTED_S ago."""
        if time.monotonic() - self._seen_at < RECHECK_S:
            return
        looks = self._looks
        async with self._looking:
            # Who waited takes the outcome of the look it waited for, good or bad, so that a
            # database that is slow or away is not asked once by each waiting request.
            if self._looks == looks:
                try:
                    await self._look()
                finally:
                    self._looks += 1
        if time.monotonic() - self._seen_at >= TRUSTED_S:
            raise DatabaseUnavailable

    async def _look(self) -> None:
        began = time.monotonic()
        version = await credentials.version(self._pool)
        if version != self._version:
            await self._forget_ended(version)
        self._version = version
        self._seen_at = began

    async def _forget_ended(self, version: int) -> None:
        known = {digest: one for digest, one in self._known.items() if one.version != version}
        ids = {credential_id(one.identity): type(one.identity) for one in known.values()}
        live = await credentials.still_live(
            self._pool,
            [key for key, kind in ids.items() if kind is NodeIdentity],
            [key for key, kind in ids.items() if kind is ApiIdentity],
        )
        for digest, one in known.items():
            if credential_id(one.identity) in live and self._known.get(digest) is one:
                self._known[digest] = attrs.evolve(one, version=version)
            else:
                self._known.pop(digest, None)
