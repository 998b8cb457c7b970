"""The Python client: one method per route, with retries where repeating is safe.

    with Client("https://controller.example:8443", api_key) as client:
        job = client.submit({"kind": "chapter.analyse", "payload": {"chapter": 7}})
        job = client.wait(job["id"])

Answers are the API's own JSON objects; shapes.py types them. Client needs the standard library
alone, so that commands start at once; umbra_compute.client.aio.AsyncClient has the same methods
over aiohttp. What the two do alike is in calls.py and exchange.py, without any network.
"""

from umbra_compute.client.api import Client
from umbra_compute.client.errors import (
    ApiError,
    BadAddress,
    ClientError,
    NotReachable,
    RefusedCredentials,
)

__all__ = [
    "ApiError",
    "BadAddress",
    "Client",
    "ClientError",
    "NotReachable",
    "RefusedCredentials",
]
