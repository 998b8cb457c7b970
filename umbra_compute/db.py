"""The driver's types, spelled once; the pools; what counts as "the database is away"."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeAlias, TypeVar

import asyncpg

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Pool: TypeAlias = asyncpg.Pool[asyncpg.Record]
    Conn: TypeAlias = asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]
else:
    Pool = asyncpg.Pool
    Conn = asyncpg.Connection

P = ParamSpec("P")
R = TypeVar("R")

SETTINGS: Final = {
    "application_name": "umbra-compute",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_mergejoin": "off",
    # What is decided after a lock is decided on what the lock shows, whatever a role's default is.
    "default_transaction_isolation": "read committed",
}
"""Session settings of the pool. Each was measured: docs/decisions/0003-claim-design.md."""

COMMAND_TIMEOUT_S: Final = 10.0
"""No statement of ours takes longer; a server that went silent must not hold a request (N30)."""

CONNECT_TIMEOUT_S: Final = 5.0
ATTEMPTS: Final = 3

AWAY: Final = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    # Of a pooled connection that the server took leave of while nobody was listening on it.
    asyncpg.InternalClientError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.QueryCanceledError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.DiskFullError,
    asyncpg.OutOfMemoryError,
)
"""What a statement raises when PostgreSQL cannot be reached, or cannot write just now."""

CONFLICTS: Final = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)


async def open_pool(dsn: str, *, size: int, min_size: int = 1) -> Pool:
    """Return an open pool of at most `size` connections.

    Raises one of AWAY if no connection can be had within CONNECT_TIMEOUT_S.
    """
    return await asyncpg.create_pool(
        dsn,
        min_size=min_size,
        max_size=size,
        timeout=CONNECT_TIMEOUT_S,
        command_timeout=COMMAND_TIMEOUT_S,
        server_settings=SETTINGS,
    )


def repeated(
    operation: Callable[Concatenate[Pool, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Pool, P], Coroutine[Any, Any, R]]:
    """Call an operation again when it lost against another transaction, ATTEMPTS times at most.

    An operation is one transaction and does nothing outside it before the commit, so calling
    it again is safe. The lock order of ops/__init__.py makes such conflicts rare.
    """

    @wraps(operation)
    async def calling(pool: Pool, /, *args: P.args, **kwargs: P.kwargs) -> R:
        for _ in range(ATTEMPTS - 1):
            try:
                return await operation(pool, *args, **kwargs)
            except CONFLICTS:
                await asyncio.sleep(0)  # let the winner go on
        return await operation(pool, *args, **kwargs)

    return calling
