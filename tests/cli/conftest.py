"""A stub of the controller, and the environment of somebody who may call it."""

from collections.abc import AsyncIterator

import pytest

from tests.client.stub import KEY, Stub, serving


@pytest.fixture
async def stub() -> AsyncIterator[Stub]:
    async with serving() as stub:
        yield stub


@pytest.fixture
def caller(stub: Stub) -> dict[str, str]:
    return {"UMBRA_URL": stub.url, "UMBRA_API_KEY": KEY}
