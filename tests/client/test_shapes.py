"""The client's types against what the controller sends."""

import inspect
from typing import Any, get_type_hints

import msgspec
import pytest

from umbra_compute.client import Client, shapes
from umbra_compute.client.aio import AsyncClient
from umbra_compute.http import wire_jobs, wire_keys, wire_nodes

SENT = [
    (shapes.Job, wire_jobs.JobReply),
    (shapes.Submitted, wire_jobs.SubmittedItem),
    (shapes.Batch, wire_jobs.BatchReply),
    (shapes.Event, wire_jobs.EventReply),
    (shapes.Queue, wire_jobs.QueueReply),
    (shapes.QueueClass, wire_jobs.QueueClass),
    (shapes.Device, wire_nodes.DeviceReply),
    (shapes.Resident, wire_nodes.ResidentReply),
    (shapes.Node, wire_nodes.NodeReply),
    (shapes.Model, wire_nodes.ModelReply),
    (shapes.NewNodeKey, wire_keys.NodeKeyShown),
    (shapes.NewApiKey, wire_keys.ApiKeyShown),
]


@pytest.mark.parametrize(("typed", "sent"), SENT, ids=lambda kind: kind.__name__)
def test_a_type_has_the_fields_that_are_sent(typed: type, sent: type[msgspec.Struct]) -> None:
    assert set(get_type_hints(typed)) == set(sent.__struct_fields__)


def test_every_type_is_compared() -> None:
    named = {kind for kind in vars(shapes).values() if isinstance(kind, type)}
    known = {typed for typed, _ in SENT}
    probes = {shapes.Alive, shapes.Ready}  # no wire type: test_calls has them
    bases = {shapes.NodeKey, shapes.ApiKey}
    assert {kind for kind in named if kind.__module__ == shapes.__name__} == known | probes | bases


def methods(client: type) -> dict[str, list[tuple[str, Any]]]:
    return {
        name: [(p.name, p.default) for p in inspect.signature(method).parameters.values()]
        for name, method in vars(client).items()
        if callable(method) and not name.startswith("_")
    }


def test_the_two_clients_have_the_same_methods() -> None:
    assert methods(Client) == methods(AsyncClient)
