"""`doctor`: check that everything works, line by line."""

import os
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import attrs
import click

from umbra_compute.cli import output, session
from umbra_compute.cli.database import on_pool
from umbra_compute.cli.exits import DatabaseNotReachable, Failed, NoKey
from umbra_compute.client import Client, ClientError
from umbra_compute.config import ConfigurationError

OLD_SNAPSHOT_S: Final = 60.0
"""A session this long in one snapshot keeps the dead rows of every claim since."""

MANY_DEAD: Final = 4.0  # dead rows of jobs for each live one, once there are enough to matter
ENOUGH_ROWS: Final = 100_000


@attrs.frozen
class Finding:
    """One line. ok None: not looked at, and why."""

    what: str
    ok: bool | None
    told: str


@click.command()
@session.on_the_database
@click.option("--url", envvar="UMBRA_URL", help="The controller's address.")
@click.option("--database", "with_database", is_flag=True, help="Look into the database too.")
@output.json_option
def doctor(url: str | None, with_database: bool, as_json: bool, **where: str | None) -> None:
    """Check controller, key, nodes and database; exit 1 if something is wrong.

    The database is looked at with --database, or if a DSN is set: on the operator's machine.
    """
    findings = _controller(url)
    if with_database or where["dsn"] is not None or "UMBRA_DSN" in os.environ:
        findings += _database(where)
    else:
        findings.append(Finding("database", None, "not looked at: --database, or set UMBRA_DSN"))
    if as_json:
        output.say_json({"findings": [attrs.asdict(one) for one in findings]})
    else:
        for one in findings:
            mark = {True: "ok", False: "WRONG", None: "-"}[one.ok]
            click.echo(f"{mark:<6} {one.what:<12} {one.told}")
    wrong = [one for one in findings if one.ok is False]
    if wrong:
        raise Failed(f"{len(wrong)} of {len(findings)} checks found something wrong.")


def _controller(url: str | None) -> list[Finding]:
    try:
        client = session.client(url)
    except NoKey as exc:
        return [Finding("key", None, f"{exc}")]
    except (ConfigurationError, ClientError) as exc:
        return [Finding("controller", False, str(exc))]
    with client:
        checks: list[tuple[str, Callable[[Client], Finding]]] = [
            ("controller", _ready),
            ("key", _key),
            ("nodes", _nodes),
            ("queue", _queue),
        ]
        findings = []
        for what, check in checks:
            try:
                findings.append(check(client))
            except ClientError as exc:
                findings.append(Finding(what, False, str(exc)))
                break
    return findings


def _ready(client: Client) -> Finding:
    told = client.ready()
    return Finding("controller", True, f"{told['status']}, schema {told['schema']}")


def _key(client: Client) -> Finding:
    client.queue()
    return Finding("key", True, "accepted")


def _nodes(client: Client) -> Finding:
    counts = Counter(node["status"] for node in client.nodes())
    told = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    if not counts:
        return Finding("nodes", False, "none: umbra-compute node add NAME, then start its agent")
    ok = "online" in counts
    return Finding("nodes", ok, told if ok else f"{told}: start an agent, nothing can run")


def _queue(client: Client) -> Finding:
    told = client.queue()
    blocked = f", {told['blocked']} blocked" if told["blocked"] else ""
    return Finding("queue", True, f"{told['queued']} waiting, {told['running']} running{blocked}")


def _database(where: dict[str, str | None]) -> list[Finding]:
    from umbra_compute import migrate  # noqa: PLC0415
    from umbra_compute.ops import health  # noqa: PLC0415

    async def look(pool: Any) -> tuple[list[str], dict[str, Any] | None]:
        missing = list(await migrate.pending(pool))
        return missing, None if missing else await health.examine(pool)

    try:
        with session.database(where["dsn"], where["data_dir"], where["config"]) as dsn:
            missing, seen = on_pool(dsn, look)
    except (ConfigurationError, DatabaseNotReachable) as exc:
        return [Finding("database", False, str(exc))]
    if seen is None:
        told = f"{', '.join(missing)} missing: umbra-compute migrate"
        return [Finding("schema", False, told)]
    return [Finding("schema", True, "current"), *_inside(seen)]


def _inside(seen: dict[str, Any]) -> list[Finding]:
    findings = [Finding("postgresql", True, seen["version"])]
    held = seen["horizon"]
    if held is None or held["age_s"] is None or held["age_s"] < OLD_SNAPSHOT_S:
        findings.append(Finding("horizon", True, "no old snapshot"))
    else:
        told = (
            f"session {held['pid']} ({held['application']}, {held['state']}) holds a snapshot "
            f"{held['age_s']:.0f} s old and keeps dead rows alive: end it"
        )
        findings.append(Finding("horizon", False, told))
    rows = seen["jobs"]
    if rows is not None:
        heavy = rows["dead"] > ENOUGH_ROWS and rows["dead"] > MANY_DEAD * rows["live"]
        told = f"{rows['live']} live, {rows['dead']} dead"
        advice = f"{told}: is autovacuum on, does a snapshot hold it back?"
        findings.append(Finding("jobs", not heavy, advice if heavy else told))
    return findings
