"""`node`: machines."""

import uuid
from typing import Any

import click

from umbra_compute.cli import output, session
from umbra_compute.cli.exits import Failed
from umbra_compute.client import Client


@click.group()
def node() -> None:
    """Add, list, drain and retire machines. NODE is a name or an id."""


@node.command("add")
@session.calls_the_api
@click.argument("name")
@click.option("--trust-domain", help="Jobs may be restricted to some of these (local).")
@click.option("--locality", help="Where it stands; jobs may prefer a place.")
@click.option("--scopes", help="What its key may do, comma-separated (all four).")
@output.json_option
def add(
    client: Client,
    name: str,
    trust_domain: str | None,
    locality: str | None,
    scopes: str | None,
    as_json: bool,
) -> None:
    """Enrol a machine and make its key, which is shown once."""
    fields = {"trust_domain": trust_domain, "locality": locality}
    made = client.add_node(name=name, **{k: v for k, v in fields.items() if v is not None})
    key = client.add_node_key(made["id"], **_scopes(scopes))
    told = {"id": made["id"], "name": made["name"], "node_key": key["node_key"]}
    if as_json:
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
    found = _find(client, node)
    if as_json:
        output.say_json(found)
        return
    output.facts(
        found,
        [
            *("name", "id", "status", "trust_domain", "locality", "running_jobs", "max_jobs"),
            *("kinds", "agent_version", "agent_started_at", "last_heartbeat_at"),
        ],
    )
    columns: list[output.Column] = [
        ("DEVICE", lambda d: d["label"]),
        ("KIND", lambda d: d["kind"]),
        ("VRAM FREE", lambda d: output.megabytes(d["vram_free_mb"], d["vram_total_mb"])),
        ("RAM FREE", lambda d: output.megabytes(d["ram_free_mb"], d["ram_total_mb"])),
        ("ACCELERATORS", lambda d: ",".join(d["supports_accelerators"])),
        ("HEALTH", lambda d: "ok" if d["healthy"] else d["health_reason"] or "ill"),
    ]
    output.table(found["devices"], columns, empty="It has reported no device yet.")
    if found["resident_models"]:
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
def drain(client: Client, node: str) -> None:
    """Let a machine finish what it runs and take nothing new."""
    _set(client, node, status="draining")


@node.command("resume")
@session.calls_the_api
@click.argument("node", metavar="NODE")
def resume(client: Client, node: str) -> None:
    """End a drain: the machine is online with its next heartbeat."""
    _set(client, node, status="offline")


@node.command("retire")
@session.calls_the_api
@click.argument("node", metavar="NODE")
def retire(client: Client, node: str) -> None:
    """Take a machine out for good; it must hold no work."""
    found = _find(client, node)
    client.retire_node(found["id"])
    click.echo(f"{found['name']} is retired.", err=True)


@node.group("key")
def node_key() -> None:
    """Add, list and revoke a machine's keys."""


@node_key.command("add")
@session.calls_the_api
@click.argument("node", metavar="NODE")
@click.option("--scopes", help="What it may do, comma-separated (all four).")
@output.json_option
def add_key(client: Client, node: str, scopes: str | None, as_json: bool) -> None:
    """Make another key of a machine; it is shown once."""
    made = client.add_node_key(_find(client, node)["id"], **_scopes(scopes))
    if as_json:
        output.say_json({"id": made["id"], "node_key": made["node_key"]})
    else:
        click.echo(f"Shown this once: {made['node_key']}")


@node_key.command("list")
@session.calls_the_api
@click.argument("node", metavar="NODE")
@output.json_option
def list_node_keys(client: Client, node: str, as_json: bool) -> None:
    """List a machine's keys; what they open, not what they are."""
    keys = list(client.node_keys(_find(client, node)["id"]))
    if as_json:
        output.say_json({"credentials": keys})
        return
    columns: list[output.Column] = [
        ("PREFIX", lambda k: k["key_prefix"]),
        ("SCOPES", lambda k: ",".join(k["scopes"])),
        ("CREATED", lambda k: output.age(k["created_at"])),
        ("ID", lambda k: k["id"]),
    ]
    output.table(keys, columns, empty="It has no key.")


@node_key.command("revoke")
@session.calls_the_api
@click.argument("node", metavar="NODE")
@click.argument("key_id")
def revoke_node_key(client: Client, node: str, key_id: str) -> None:
    """End a machine's key; every controller refuses it within 2 s."""
    client.revoke_node_key(_find(client, node)["id"], key_id)
    click.echo(f"Revoked {key_id}.", err=True)


def _find(client: Client, name_or_id: str) -> dict[str, Any]:
    try:
        return client.node(str(uuid.UUID(name_or_id)))
    except ValueError:
        pass
    for found in client.nodes():
        if found["name"] == name_or_id:
            return found
    raise Failed(f"There is no node {name_or_id}: umbra-compute node list shows them.")


def _set(client: Client, name_or_id: str, *, status: str) -> None:
    found = client.change_node(_find(client, name_or_id)["id"], status=status)
    running = found["running_jobs"]
    click.echo(f"{found['name']} is {found['status']} and runs {running} jobs.", err=True)


def _scopes(scopes: str | None) -> dict[str, list[str]]:
    return {} if scopes is None else {"scopes": [s.strip() for s in scopes.split(",") if s.strip()]}
