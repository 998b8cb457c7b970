"""`migrate`, `init`, `org`: on the database itself, by whoever operates it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from umbra_compute.cli import output, session
from umbra_compute.cli.exits import DatabaseNotReachable, Failed
from umbra_compute.cli.session import Database
from umbra_compute.config import ConfigurationError

if TYPE_CHECKING:
    from umbra_compute.db import Pool
    from umbra_compute.ops.hashing import Hasher

T = TypeVar("T")

NAME_CHARS: Final = 200  # as the API's names


@click.command()
@session.on_the_database
@click.option("--check", is_flag=True, help="Apply nothing; exit 1 if something is missing.")
@output.json_option
def migrate(database: Database, check: bool, as_json: bool) -> None:
    """Bring the database's schema up to date.

    `serve` does this by itself; use it to do so before an upgrade.
    """
    from umbra_compute import migrate as runner  # noqa: PLC0415

    with database.opened() as dsn:
        if check:
            names = list(on_pool(dsn, runner.pending))
        else:
            applied = reaching(runner.migrate(dsn))
            names = [f"{one.version:04}_{one.name}" for one in applied]
    if as_json:
        output.say_json({"pending" if check else "applied": names})
    elif names:
        click.echo(f"{'Missing' if check else 'Applied'}: {', '.join(names)}.")
    else:
        click.echo("The schema is up to date.")
    if check and names:
        raise Failed("The schema is not up to date: run umbra-compute migrate.")


@click.command()
@session.on_the_database
@click.option("--org", "name", required=True, help="The organization's name.")
@output.json_option
def init(database: Database, name: str, as_json: bool) -> None:
    """Make the schema, the first organization, and its admin key, which is shown once."""
    from umbra_compute import migrate as runner  # noqa: PLC0415
    from umbra_compute.ops import organizations  # noqa: PLC0415

    _check_name(name)

    async def bootstrap(pool: "Pool", hasher: "Hasher") -> dict[str, str]:
        made, _, key = await organizations.bootstrap(pool, hasher, name)
        return {"organization_id": str(made.id), "api_key": key.text}

    with database.opened() as dsn:
        reaching(runner.migrate(dsn))
        told = on_pool_hashing(dsn, bootstrap)
    if output.is_for_a_program(as_json):
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
def add(database: Database, name: str, as_json: bool) -> None:
    """Add an organization. `key add --org NAME` makes its first key."""
    from umbra_compute.ops import organizations  # noqa: PLC0415

    _check_name(name)
    with database.opened() as dsn:
        made = on_pool(dsn, lambda pool: organizations.create(pool, name))
    told = {"id": str(made.id), "name": made.name}
    if output.is_for_a_program(as_json):
        output.say_json(told)
    else:
        click.echo(f"Organization {name}: {told['id']}")


@org.command("list")
@session.on_the_database
@output.json_option
def list_organizations(database: Database, as_json: bool) -> None:
    """List the organizations."""
    from umbra_compute.ops import organizations  # noqa: PLC0415

    with database.opened() as dsn:
        found = on_pool(dsn, organizations.every)
    rows = [{"id": str(one.id), "name": one.name} for one in found]
    if as_json:
        output.say_json({"organizations": rows})
        return
    columns: list[output.Column] = [("NAME", lambda o: o["name"]), ("ID", lambda o: o["id"])]
    output.table(rows, columns, empty="There is no organization: umbra-compute init --org NAME.")


def on_pool(dsn: str, operation: Callable[["Pool"], Awaitable[T]]) -> T:
    """Run one operation on a pool of its own.

    Raises DatabaseNotReachable, ConfigurationError, Failed if the schema is not there.
    """
    from umbra_compute import db  # noqa: PLC0415

    async def run() -> T:
        async with await db.open_pool(dsn, size=1) as pool:
            return await operation(pool)

    return reaching(run())


def on_pool_hashing(dsn: str, operation: Callable[["Pool", "Hasher"], Awaitable[T]]) -> T:
    """As on_pool, for what makes a key."""
    from umbra_compute.ops.hashing import Hasher  # noqa: PLC0415

    hasher = Hasher()
    try:
        return on_pool(dsn, lambda pool: operation(pool, hasher))
    finally:
        hasher.close()


def reaching(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` on the database. Raises DatabaseNotReachable, ConfigurationError, Failed."""
    import asyncpg  # noqa: PLC0415

    from umbra_compute import db  # noqa: PLC0415

    try:
        return asyncio.run(work)
    except (ValueError, asyncpg.InvalidAuthorizationSpecificationError) as exc:
        # Nothing that waiting would mend: a DSN that is none, or that the server refuses.
        raise ConfigurationError(f"The database cannot be used ({exc}): correct the DSN.") from None
    except db.AWAY as exc:
        raise DatabaseNotReachable(str(exc) or type(exc).__name__) from None
    except asyncpg.UndefinedTableError:
        raise Failed("The database has no schema yet: run umbra-compute migrate.") from None


def _check_name(name: str) -> None:
    if not 1 <= len(name) <= NAME_CHARS or not name.isprintable():
        raise click.UsageError(f"A name has 1 to {NAME_CHARS} characters, all printable.")
