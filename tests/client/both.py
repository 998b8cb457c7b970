"""One face for the two clients, so that what they promise alike is tested alike."""

import asyncio
from typing import Any

import attrs

from umbra_compute.client import Client
from umbra_compute.client.aio import AsyncClient


@attrs.frozen
class Either:
    """Calls a method of a client by its name, and gathers what it iterates over."""

    client: Client | AsyncClient

    async def __call__(self, method: str, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self.client, Client):
            return await asyncio.to_thread(self._plain, method, args, kwargs)
        answer = getattr(self.client, method)(*args, **kwargs)
        if hasattr(answer, "__aiter__"):
            return [one async for one in answer]
        return await answer

    def _plain(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        answer = getattr(self.client, method)(*args, **kwargs)
        return list(answer) if hasattr(answer, "__next__") else answer

    async def close(self) -> None:
        if isinstance(self.client, Client):
            self.client.close()
        else:
            await self.client.close()


CLIENTS: dict[str, type[Client] | type[AsyncClient]] = {"plain": Client, "async": AsyncClient}
