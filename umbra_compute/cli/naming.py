"""Which node is meant: NODE on the command line is a name or an id."""

from uuid import UUID

from umbra_compute.cli.exits import Failed
from umbra_compute.client import Client
from umbra_compute.client.shapes import Node


def node_named(client: Client, name_or_id: str) -> Node:
    """Return the node. Raises Failed if no node has the name, ApiError if none has the id."""
    if _is_id(name_or_id):
        return client.node(name_or_id)
    for found in client.nodes():
        if found["name"] == name_or_id:
            return found
    raise Failed(f"There is no node {name_or_id}: umbra-compute node list shows them.")


def node_id_named(client: Client, name_or_id: str) -> str:
    return name_or_id if _is_id(name_or_id) else node_named(client, name_or_id)["id"]


def _is_id(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False
