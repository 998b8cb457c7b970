"""`node`: machines."""

from collections.abc import Mapping
from typing import Any, Final

import click

from umbra_compute.cli import output, session
from umbra_compute.cli.exits import Failed
from umbra_compute.cli.naming import node_id_named, node_named
from umbra_compute.cli.scopes import Scopes
from umbra_compute.client import Client, ClientError
from umbra_compute.model.caller import NodeScope

_FACTS: Final = (
    *("name", "id", "status", "trust_domain", "locality", "running_jobs", "max_jobs"),
    *("kinds", "agent_version", "agent_started_at", "last_heartbeat_at", "measurements"),
)

_scopes_option = click.option(
    "--scopes", type=Scopes(NodeScope), help="What its key may do, comma-separated (all four)."
)


@click.group()
def node() -> None:
    """Add, list, drain and retire machines. NODE is a name or an id."""


@node.command("add")
@session.calls_the_api
@click.argument("name")
@click.option("--trust-domain", help="Jobs may be restricted to some of these (local).")
@click.option("--locality", help="Where it stands; jobs may prefer a place.")
@_scopes_option
@output.json_option
def add(
    client: Client,
    name: str,
    trust_domain: str | None,
    locality: str | None,
    scopes: list[str] | None,
    as_json: bool,
) -> None:
    """Enrol a machine and make its key, which is shown once."""
    fields = {"trust_domain": trust_domain, "locality": locality}
    made = client.add_node(name, **{k: v for k, v in fields.items() if v is not None})
    try:
        key = client.add_node_key(made["id"], **_scopes(scopes))
    except ClientError as exc:
        raise Failed(
            f"{name} is enrolled but has no key: umbra-compute node key add {name}. {exc}"
        ) from None
    told = {"id": made["id"], "name": made["name"], "node_key": key["node_key"]}
    if output.is_for_a_program(as_json):
        output.say_json(told)
        return
    click.echo(f"Node {name}: {made['id']}")
    click.echo(f"Its key, shown this once: {key['node_key']}")


@node.command("list")
@session.calls_the_api
@click.option("--status", help="Only those that are online, draining, offline, …")
@output.json_option
def list_nodes(client: Client, status: str | None, as_json: bool) -> None:
    """List the machines."""
    nodes = list(client.nodes(status=status))
    if as_json:
        output.say_json({"nodes": nodes})
        return
    columns: list[output.Column] = [
        ("NAME", lambda n: n["name"]),
        ("STATUS", lambda n: n["status"]),
        ("JOBS", lambda n: f"{n['running_jobs']}/{n['max_jobs']}"),
        ("DEVICES", lambda n: ", ".join(d["label"] for d in n["devices"])),
        ("TRUST", lambda n: n["trust_domain"]),
        ("HEARD", lambda n: output.age(n["last_heartbeat_at"])),
        ("ID", lambda n: n["id"]),
    ]
    output.table(nodes, columns, empty="There is no node: umbra-compute node add NAME.")


@node.command("show")
@session.calls_the_api
@click.argument("node", metavar="NODE")
@output.json_option
def show(client: Client, node: str, as_json: bool) -> None:
    """Show a machine: its devices, memory, models, and what it runs."""
    found = node_named(client, node)
    if as_json:
        output.say_json(found)
        return
    output.facts(found, _FACTS)
    click.echo()
    columns: list[output.Column] = [
        ("DEVICE", lambda d: d["label"]),
        ("KIND", lambda d: d["kind"]),
        ("VRAM FREE", lambda d: output.megabytes(d["vram_free_mb"], d["vram_total_mb"])),
        ("RAM FREE", lambda d: output.megabytes(d["ram_free_mb"], d["ram_total_mb"])),
        ("ACCELERATORS", lambda d: ",".join(d["supports_accelerators"])),
        ("HEALTH", _health),
    ]
    output.table(found["devices"], columns, empty="It has reported no device yet.")
    if found["resident_models"]:
        click.echo()
        warm: list[output.Column] = [
            ("MODEL", lambda m: m["slug"]),
            ("STATE", lambda m: m["state"]),
            ("DEVICE", lambda m: m["device"]),
            ("VRAM MB", lambda m: m["vram_held_mb"]),
            ("RAM MB", lambda m: m["ram_held_mb"]),
        ]
        output.table(found["resident_models"], warm, empty="")


@node.command("drain")
@session.calls_the_api
@click.argument("node", metavar="NODE")
@output.json_option
def drain(client: Client, node: str, as_json: bool) -> None:
    """Let a machine finish what it runs and take nothing new."""
    _set(client, node, status="draining", as_json=as_json)


@node.command("resume")
@session.calls_the_api
@click.argument("node", metavar="NODE")
@output.json_option
def resume(client: Client, node: str, as_json: bool) -> None:
    """End a drain: the machine is online with its next heartbeat."""
    _set(client, node, status="offline", as_json=as_json)


@node.command("retire")
@session.calls_the_api
@click.argument("node", metavar="NODE")
@output.json_option
def retire(client: Client, node: str, as_json: bool) -> None:
    """Take a machine out for good; it must hold no work."""
    found = node_named(client, node)
    client.retire_node(found["id"])
    told = {"id": found["id"], "name": found["name"], "status": "retired"}
    output.done(told, f"{found['name']} is retired.", as_json=as_json)


@node.group("key")
def node_key() -> None:
    """Add, list and revoke a machine's keys."""


@node_key.command("add")
@session.calls_the_api
@click.argument("node", metavar="NODE")
@_scopes_option
@output.json_option
def add_key(client: Client, node: str, scopes: list[str] | None, as_json: bool) -> None:
    """Make another key of a machine; it is shown once."""
    made = client.add_node_key(node_id_named(client, node), **_scopes(scopes))
    if output.is_for_a_program(as_json):
        output.say_json({"id": made["id"], "node_key": made["node_key"]})
    else:
        click.echo(f"Shown this once: {made['node_key']}")


@node_key.command("list")
@session.calls_the_api
@click.argument("node", metavar="NODE")
@output.json_option
def list_node_keys(client: Client, node: str, as_json: bool) -> None:
    """List a machine's keys; what they open, not what they are."""
    keys = list(client.node_keys(node_id_named(client, node)))
    if as_json:
        output.say_json({"credentials": keys})
        return
    columns: list[output.Column] = [
        ("PREFIX", lambda k: k["key_prefix"]),
        ("SCOPES", lambda k: ",".join(k["scopes"])),
        ("CREATED", lambda k: output.age(k["created_at"])),
        ("USED", lambda k: output.age(k["last_used_at"])),
        ("REVOKED", lambda k: output.age(k["revoked_at"])),
        ("ID", lambda k: k["id"]),
    ]
    output.table(keys, columns, empty="It has no key: umbra-compute node key add NODE.")


@node_key.command("revoke")
@session.calls_the_api
@click.argument("node", metavar="NODE")
@click.argument("key_id")
@output.json_option
def revoke_node_key(client: Client, node: str, key_id: str, as_json: bool) -> None:
    """End a machine's key; every controller refuses it within 2 s."""
    client.revoke_node_key(node_id_named(client, node), key_id)
    output.done({"id": key_id}, f"Revoked {key_id}.", as_json=as_json)


def _set(client: Client, name_or_id: str, *, status: str, as_json: bool) -> None:
    found = client.change_node(node_id_named(client, name_or_id), status=status)
    told = f"{found['name']} is {found['status']} and runs {found['running_jobs']} jobs."
    output.done(found, told, as_json=as_json)


def _health(device: Mapping[str, Any]) -> str:
    if device["healthy"]:
        return "ok"
    return "ill" if device["health_reason"] is None else str(device["health_reason"])


def _scopes(scopes: list[str] | None) -> dict[str, list[str]]:
    return {} if scopes is None else {"scopes": scopes}
