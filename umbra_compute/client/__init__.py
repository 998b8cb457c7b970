"""The Python client: one method per route, with retries where repeating is safe.

    with Client("https://controller.example:8443", api_key) as client:
        job = client.submit({"kind": "chapter.analyse", "payload": {"chapter": 7}})
        job = client.wait(job["id"])

Answers are the API's own JSON objects (docs/api.md). Standard library only, so that commands
start at once.
"""

from umbra_compute.client.api import Client
from umbra_compute.client.errors import ApiError, ClientError, NotReachable, RefusedCredentials

__all__ = ["ApiError", "Client", "ClientError", "NotReachable", "RefusedCredentials"]
