"""The console's files: served as they are, and nothing from elsewhere."""

import re

import pytest

from tests.http.conftest import Client
from umbra_compute.http.console import FILES


@pytest.mark.parametrize("name", FILES)
async def test_each_file_is_served_with_a_strict_policy(client: Client, name: str) -> None:
    async with client.get(f"/console/{name}") as answer:
        assert answer.status == 200
        assert answer.content_type == FILES[name]
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        text = await answer.text()
    assert re.findall(r"https?://", text) == []
    assert "innerHTML" not in text


async def test_the_address_without_a_slash_leads_there(client: Client) -> None:
    async with client.get("/console") as answer:
        assert answer.status == 200
        assert "<title>Umbra Compute</title>" in await answer.text()


async def test_no_other_file_is_served(client: Client) -> None:
    for name in ("__init__.py", "..%2fapp.py", "x"):
        async with client.get(f"/console/{name}") as answer:
            assert answer.status == 404
