"""The routes for the registry of models."""

import base64
import json
from typing import Any

import pytest

from tests.http.badinput import assert_refused, variants
from tests.http.conftest import Keys
from tests.http.work import Work, work
from umbra_compute.http import wire_nodes as shapes

__all__ = ["work"]

MODEL: dict[str, Any] = {
    "kind": "llm",
    "vram_min_mb": 0,
    "vram_preferred_mb": 10,
    "ram_min_mb": 5,
    "requires_accelerators": ["cuda"],
    "reference_throughput": 1.5,
    "load_seconds": 0,
}


@pytest.mark.parametrize("slug", ["m", "org/llm:7b-q4", "org%2Fllm%3A7b-q4", "ü ☃"])
async def test_a_models_name_may_hold_anything(work: Work, slug: str) -> None:
    put = await work.api("PUT", f"/v1/models/{slug}", MODEL)
    assert put["http"] == 201
    assert {name: put[name] for name in MODEL} == MODEL
    again = await work.api("PUT", f"/v1/models/{slug}", {})
    assert (again["http"], again["vram_min_mb"]) == (200, None)
    assert (await work.api("GET", f"/v1/models/{slug}"))["slug"] == put["slug"]
    listed = await work.api("GET", "/v1/models")
    assert [model["slug"] for model in listed["models"]] == [put["slug"]]
    assert (await work.call(work.node, "GET", "/v1/node/models"))["models"] == listed["models"]
    async with work.client.delete(f"/v1/models/{slug}", headers=work.admin.headers) as answer:
        assert answer.status == 204
    told = await work.api("DELETE", f"/v1/models/{slug}")
    assert (told["http"], told["code"]) == (404, "model_not_found")


async def test_bad_models_are_refused_and_nothing_is_stored(work: Work) -> None:
    for bad in variants(MODEL, shapes.ModelBody):
        await assert_refused(work.client, "PUT", "/v1/models/m", bad, headers=work.admin.headers)
    assert (await work.api("PUT", f"/v1/models/{'m' * 201}", {}))["http"] == 422
    assert await work.pool.fetchval("SELECT count(*) FROM model_registry") == 0


async def test_models_are_listed_page_by_page(work: Work) -> None:
    for slug in ("b/2", "a:1", "c"):
        await work.api("PUT", f"/v1/models/{slug}", {})
    first = await work.api("GET", "/v1/models?limit=2")
    rest = await work.api("GET", f"/v1/models?limit=2&cursor={first['next_cursor']}")
    slugs = [model["slug"] for model in first["models"] + rest["models"]]
    assert (slugs, rest["next_cursor"]) == (["a:1", "b/2", "c"], None)
    own = await work.call(work.node, "GET", "/v1/node/models")
    assert ([model["slug"] for model in own["models"]], own["next_cursor"]) == (slugs, None)


@pytest.mark.parametrize("place", [["a\0"], ["\ud800"], ["a" * 201], [""], [1], [], ["a", "b"], {}])
async def test_a_cursor_that_is_none_of_ours_is_refused(work: Work, place: Any) -> None:
    cursor = base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")
    told = await work.api("GET", f"/v1/models?cursor={cursor}")
    assert (told["http"], told["code"]) == (422, "invalid_query")


async def test_another_tenants_model_and_a_made_up_one_get_the_same_answer_u6(
    work: Work, keys: Keys
) -> None:
    await work.api("PUT", "/v1/models/m", MODEL)
    stranger = await keys.organization("other")
    for method in ("GET", "DELETE"):
        told = [await work.call(stranger, method, f"/v1/models/{slug}") for slug in ("m", "n")]
        assert [(one["http"], one["code"]) for one in told] == [(404, "model_not_found")] * 2
    assert (await work.call(stranger, "GET", "/v1/models"))["models"] == []
    assert (await work.call(stranger, "PUT", "/v1/models/m", {}))["http"] == 201
    assert (await work.api("GET", "/v1/models/m"))["vram_preferred_mb"] == 10
