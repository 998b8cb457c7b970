"""`key`: API keys of people and programs."""

from typing import Any

import click

from umbra_compute.cli import output, session
from umbra_compute.cli.database import on_pool
from umbra_compute.cli.exits import Failed
from umbra_compute.client import Client


@click.group()
def key() -> None:
    """Add, list and revoke API keys."""


@key.command("add")
@session.on_the_database
@click.option("--url", envvar="UMBRA_URL", help="The controller's address.")
@click.option("--name", required=True, help="What the key is for.")
@click.option("--scopes", required=True, help="Comma-separated: jobs:read,jobs:write,…")
@click.option("--org", help="Make it on the database, for this organization; needs no key.")
@click.option("--expires-in-s", type=int, help="Seconds until it ends; never, if not given.")
@output.json_option
def add(
    url: str | None,
    name: str,
    scopes: str,
    org: str | None,
    expires_in_s: int | None,
    as_json: bool,
    **where: str | None,
) -> None:
    """Make a key; it is shown once."""
    wanted = [scope.strip() for scope in scopes.split(",") if scope.strip()]
    if org is None:
        expiry = {} if expires_in_s is None else {"expires_in_s": expires_in_s}
        with session.client(url) as client:
            made = client.add_key(name=name, scopes=wanted, **expiry)
        told = {"id": made["id"], "api_key": made["api_key"]}
    else:
        told = _on_the_database(org, name, wanted, expires_in_s, where)
    if as_json:
        output.say_json(told)
    else:
        click.echo(f"Key {name}: {told['id']}")
        click.echo(f"Shown this once: {told['api_key']}")


def _on_the_database(
    org: str, name: str, scopes: list[str], expires_in_s: int | None, where: dict[str, str | None]
) -> dict[str, str]:
    from umbra_compute.model.caller import ApiScope  # noqa: PLC0415
    from umbra_compute.ops import credentials, organizations  # noqa: PLC0415
    from umbra_compute.ops.hashing import Hasher  # noqa: PLC0415

    known = [str(scope) for scope in ApiScope]
    for scope in scopes:
        if scope not in known:
            raise click.UsageError(f"There is no scope {scope!r}; there are {', '.join(known)}.")

    async def make(pool: Any) -> dict[str, str]:
        found = await organizations.by_name(pool, org)
        if found is None:
            raise Failed(f"There is no organization {org}: umbra-compute org list shows them.")
        hasher = Hasher()
        try:
            api_key, made = await credentials.issue_first_api_key(
                pool,
                hasher,
                found.id,
                name=name,
                scopes=[ApiScope(scope) for scope in scopes],
                expires_in_s=expires_in_s,
            )
        finally:
            hasher.close()
        return {"id": str(api_key.id), "api_key": made.text}

    with session.database(where["dsn"], where["data_dir"], where["config"]) as dsn:
        return on_pool(dsn, make)


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
        ("ID", lambda k: k["id"]),
    ]
    output.table(keys, columns, empty="There is no key.")


@key.command("revoke")
@session.calls_the_api
@click.argument("key_id")
def revoke(client: Client, key_id: str) -> None:
    """End a key; every controller refuses it within 2 s."""
    client.revoke_key(key_id)
    click.echo(f"Revoked {key_id}.", err=True)
