"""`key`: API keys of people and programs."""

from typing import TYPE_CHECKING, Any

import click

from umbra_compute.cli import output, session
from umbra_compute.cli.database import on_pool_hashing
from umbra_compute.cli.exits import Failed
from umbra_compute.cli.scopes import Scopes
from umbra_compute.cli.session import Controller, Database
from umbra_compute.client import Client
from umbra_compute.model.caller import ApiScope

if TYPE_CHECKING:
    from umbra_compute.db import Pool
    from umbra_compute.ops.hashing import Hasher


@click.group()
def key() -> None:
    """Add, list and revoke API keys."""


@key.command("add")
@session.on_either
@click.option("--name", required=True, help="What the key is for.")
@click.option(
    "--scopes", required=True, type=Scopes(ApiScope), help="Comma-separated: jobs:read,jobs:write."
)
@click.option("--org", help="Make it on the database, for this organization; needs no key.")
@click.option("--expires-in-s", type=click.IntRange(1), help="Seconds until it ends (never).")
@output.json_option
def add(
    controller: Controller,
    database: Database,
    name: str,
    scopes: list[str],
    org: str | None,
    expires_in_s: int | None,
    as_json: bool,
) -> None:
    """Make a key; it is shown once."""
    if org is None:
        expiry = {} if expires_in_s is None else {"expires_in_s": expires_in_s}
        with controller.client() as client:
            made = client.add_key(name, scopes, **expiry)
        told = {"id": made["id"], "api_key": made["api_key"]}
    else:
        told = _on_the_database(database, org, name=name, scopes=scopes, expires_in_s=expires_in_s)
    if output.is_for_a_program(as_json):
        output.say_json(told)
        return
    click.echo(f"Key {name}: {told['id']}")
    click.echo(f"Shown this once: {told['api_key']}")


def _on_the_database(
    database: Database, org: str, *, name: str, scopes: list[str], **expiry: Any
) -> dict[str, str]:
    from umbra_compute.ops import credentials, organizations  # noqa: PLC0415

    async def make(pool: "Pool", hasher: "Hasher") -> dict[str, str]:
        found = await organizations.by_name(pool, org)
        if found is None:
            raise Failed(f"There is no organization {org}: umbra-compute org list shows them.")
        wanted = [ApiScope(scope) for scope in scopes]
        api_key, made = await credentials.issue_first_api_key(
            pool, hasher, found.id, name=name, scopes=wanted, **expiry
        )
        return {"id": str(api_key.id), "api_key": made.text}

    with database.opened() as dsn:
        return on_pool_hashing(dsn, make)


@key.command("list")
@session.calls_the_api
@output.json_option
def list_keys(client: Client, as_json: bool) -> None:
    """List the organization's keys; what they open, not what they are."""
    keys = list(client.keys())
    if as_json:
        output.say_json({"keys": keys})
        return
    columns: list[output.Column] = [
        ("NAME", lambda k: k["name"]),
        ("PREFIX", lambda k: k["key_prefix"]),
        ("SCOPES", lambda k: ",".join(k["scopes"])),
        ("CREATED", lambda k: output.age(k["created_at"])),
        ("USED", lambda k: output.age(k["last_used_at"])),
        ("ENDS", lambda k: k["expires_at"]),
        ("REVOKED", lambda k: output.age(k["revoked_at"])),
        ("ID", lambda k: k["id"]),
    ]
    output.table(keys, columns, empty="There is no key.")


@key.command("revoke")
@session.calls_the_api
@click.argument("key_id")
@output.json_option
def revoke(client: Client, key_id: str, as_json: bool) -> None:
    """End a key; every controller refuses it within 2 s."""
    client.revoke_key(key_id)
    output.done({"id": key_id}, f"Revoked {key_id}.", as_json=as_json)
