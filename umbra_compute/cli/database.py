"""`migrate`, `init`, `org`: on the database itself, by whoever operates it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import click

from umbra_compute.cli import output, session
from umbra_compute.cli.exits import DatabaseNotReachable, Failed

T = TypeVar("T")


@click.command()
@session.on_the_database
@click.option("--check", is_flag=True, help="Apply nothing; exit 1 if something is missing.")
@output.json_option
def migrate(check: bool, as_json: bool, **where: str | None) -> None:
    """Bring the database's schema up to date.

    `serve` does this by itself; use it to do so before an upgrade.
    """
    from umbra_compute import migrate as runner  # noqa: PLC0415

    with session.database(**_place(where)) as dsn:
        if check:
            missing = list(on_pool(dsn, runner.pending))
        else:
            applied = _reaching(lambda: asyncio.run(runner.migrate(dsn)))
            missing = [f"{m.version:04}_{m.name}" for m in applied]
    if as_json:
        output.say_json({"pending" if check else "applied": missing})
    else:
        done = "The schema is up to date."
        told = f"{'Missing' if check else 'Applied'}: {', '.join(missing)}."
        click.echo(told if missing else done)
    if check and missing:
        raise Failed("The schema is not up to date: run umbra-compute migrate.")


@click.command()
@session.on_the_database
@click.option("--org", "name", required=True, help="The organization's name.")
@output.json_option
def init(name: str, as_json: bool, **where: str | None) -> None:
    """Make the schema, the first organization, and its admin key, which is shown once."""
    from umbra_compute import migrate as runner  # noqa: PLC0415
    from umbra_compute.ops import organizations  # noqa: PLC0415
    from umbra_compute.ops.hashing import Hasher  # noqa: PLC0415

    async def bootstrap(pool: Any) -> dict[str, str]:
        hasher = Hasher()
        try:
            made, _, key = await organizations.bootstrap(pool, hasher, name)
        finally:
            hasher.close()
        return {"organization_id": str(made.id), "api_key": key.text}

    _check_name(name)
    with session.database(**_place(where)) as dsn:
        _reaching(lambda: asyncio.run(runner.migrate(dsn)))
        told = on_pool(dsn, bootstrap)
    if as_json:
        output.say_json(told)
        return
    click.echo(f"Organization {name}: {told['organization_id']}")
    click.echo(f"Admin key, shown this once: {told['api_key']}")
    click.echo("Use it by: read -rs UMBRA_API_KEY; export UMBRA_API_KEY", err=True)


@click.group()
def org() -> None:
    """Add and list organizations, on the database."""


@org.command("add")
@session.on_the_database
@click.argument("name")
@output.json_option
def add(name: str, as_json: bool, **where: str | None) -> None:
    """Add an organization. `key add --org NAME` makes its first key."""
    from umbra_compute.ops import organizations  # noqa: PLC0415

    _check_name(name)
    with session.database(**_place(where)) as dsn:
        made = on_pool(dsn, lambda pool: organizations.create(pool, name))
    told = {"id": str(made.id), "name": made.name}
    if as_json:
        output.say_json(told)
    else:
        click.echo(f"Organization {name}: {told['id']}")


@org.command("list")
@session.on_the_database
@output.json_option
def list_organizations(as_json: bool, **where: str | None) -> None:
    """List the organizations."""
    from umbra_compute.ops import organizations  # noqa: PLC0415

    with session.database(**_place(where)) as dsn:
        found = on_pool(dsn, organizations.every)
    rows = [{"id": str(one.id), "name": one.name} for one in found]
    if as_json:
        output.say_json({"organizations": rows})
    else:
        columns = [("NAME", lambda r: r["name"]), ("ID", lambda r: r["id"])]
        output.table(
            rows, columns, empty="There is no organization: umbra-compute init --org NAME."
        )


def on_pool(dsn: str, operation: Callable[[Any], Awaitable[T]]) -> T:
    """Run one operation on a pool of its own. Raises DatabaseNotReachable."""
    from umbra_compute import db  # noqa: PLC0415

    async def run() -> T:
        async with await db.open_pool(dsn, size=1) as pool:
            return await operation(pool)

    return _reaching(lambda: asyncio.run(run()))


def _reaching(call: Callable[[], T]) -> T:
    from asyncpg import InvalidAuthorizationSpecificationError  # noqa: PLC0415

    from umbra_compute import db  # noqa: PLC0415

    try:
        return call()
    except (*db.AWAY, InvalidAuthorizationSpecificationError) as exc:
        raise DatabaseNotReachable(str(exc) or type(exc).__name__) from None


def _place(where: dict[str, str | None]) -> dict[str, str | None]:
    return {name: where[name] for name in ("dsn", "data_dir", "config")}


def _check_name(name: str) -> None:
    if not 1 <= len(name) <= 200 or "\0" in name:  # noqa: PLR2004 - as the API's names
        raise click.UsageError("A name has 1 to 200 characters.")
