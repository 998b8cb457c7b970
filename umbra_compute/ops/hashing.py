"""argon2id off the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

import argon2

R = TypeVar("R")

PROFILE: Final = argon2.Parameters(
    type=argon2.Type.ID,
    version=19,
    salt_len=16,
    hash_len=32,
    time_cost=1,
    memory_cost=8 * 1024,  # KiB
    parallelism=1,
)
"""4 ms here. What slows a guesser down is the 256 bits of the secret, not the hash; and after a
restart ten thousand nodes have to be verified before they go stale (docs/decisions/)."""

_THREADS: Final = 2
"""Verifications at once: a storm of them costs latency to newcomers, not memory to everybody."""


class Hasher:
    """Hashes and verifies keys in threads of its own. Close it when done."""

    def __init__(self, profile: argon2.Parameters = PROFILE) -> None:
        self._argon2 = argon2.PasswordHasher.from_parameters(profile)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="argon2")

    async def hash(self, key: str) -> str:
        return await self._run(self._argon2.hash, key)

    async def verify(self, key_hash: str, key: str) -> bool:
        """Tell whether `key` is what was hashed. The profile in `key_hash` counts, not ours."""
        try:
            return await self._run(self._argon2.verify, key_hash, key)
        except argon2.exceptions.VerifyMismatchError:
            return False

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _run(self, call: Callable[..., R], *args: str) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *args)
