"""`doctor`: check that everything works, line by line."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import attrs
import click

from umbra_compute.cli import output, session
from umbra_compute.cli.database import on_pool
from umbra_compute.cli.exits import DatabaseNotReachable, Failed
from umbra_compute.cli.session import Controller, Database, NoKey
from umbra_compute.client import Client, ClientError, RefusedCredentials
from umbra_compute.config import ConfigurationError

if TYPE_CHECKING:
    from umbra_compute.db import Pool

OLDEST_POSTGRESQL: Final = 15

OLD_SNAPSHOT_S: Final = 60.0
"""A transaction open for this long keeps the dead rows of every claim since."""

OLD_XIDS: Final = 1_000_000
"""The same for a replication slot, which has no age: about a million jobs ago."""

LATE_SWEEP_S: Final = 60.0  # some sweep runs every second, as long as one controller runs

MANY_DEAD: Final = 4.0  # dead rows of jobs for each live one, once there are enough to matter
ENOUGH_ROWS: Final = 100_000


@attrs.frozen
class Finding:
    """One line. ok None: not looked at, and why."""

    what: str
    ok: bool | None
    told: str


@click.command()
@session.on_either
@click.option("--database", "forced", is_flag=True, help="Start our own PostgreSQL to look at it.")
@output.json_option
def doctor(controller: Controller, database: Database, forced: bool, as_json: bool) -> None:
    """Check settings, controller, key, nodes and database; exit 1 if something is wrong.

    The database is looked at where it can be: with a DSN, or where our own PostgreSQL runs.
    """
    findings = [*_settings(database), *_controller(controller)]
    findings += _database(database, forced=forced)
    if as_json:
        output.say_json({"findings": [attrs.asdict(one) for one in findings]})
    else:
        for one in findings:
            mark = {True: "ok", False: "WRONG", None: "-"}[one.ok]
            click.echo(output.printable(f"{mark:<6} {one.what:<12} {one.told}"))
    wrong = [one.what for one in findings if one.ok is False]
    if wrong:
        raise Failed(f"Something is wrong with: {', '.join(wrong)}.")


def _settings(database: Database) -> list[Finding]:
    try:
        settings = database.settings()
    except ConfigurationError as exc:
        return [Finding("settings", False, str(exc))]
    place = f"our own PostgreSQL in {settings.data_dir}" if settings.dsn is None else "a DSN"
    return [Finding("settings", True, f"{place}, listening on {settings.listen}")]


def _controller(controller: Controller) -> Iterator[Finding]:
    """Yield what the API shows; it ends where there is no sense in going on."""
    try:
        client = controller.client()
    except NoKey as exc:
        yield Finding("key", None, str(exc))
        return
    except (ConfigurationError, ClientError) as exc:
        yield Finding("controller", False, str(exc))
        return
    with client:
        try:
            client.alive()
        except ClientError as exc:
            yield Finding("controller", False, str(exc))
            return
        yield Finding("controller", True, "reachable")
        try:
            client.ready()
        except ClientError as exc:
            yield Finding("readiness", False, str(exc))
            return
        yield Finding("readiness", True, "database and schema are fine")
        yield from _with_key(client)


def _with_key(client: Client) -> Iterator[Finding]:
    # A key may be for one of these only: 403 says that it is good, and not for this.
    for what, look in (("queue", _queue), ("nodes", _nodes)):
        try:
            finding = look(client)
        except RefusedCredentials as exc:
            if exc.status == 401:  # noqa: PLR2004
                yield Finding("key", False, f"not accepted: {exc} umbra-compute key add makes one.")
                return
            finding = Finding(what, None, f"not looked at: {exc}")
        except ClientError as exc:
            finding = Finding(what, False, str(exc))
        if what == "queue" and finding.ok is not False:
            yield Finding("key", True, "accepted")
        yield finding


def _queue(client: Client) -> Finding:
    told = client.queue()
    line = f"{told['queued']} waiting, {told['scheduled']} later, {told['running']} running"
    if not told["blocked"]:
        return Finding("queue", True, line)
    reasons = {one["blocked"] for one in told["classes"] if one["blocked"] is not None}
    return Finding("queue", False, f"{line}, {told['blocked']} blocked: {'; '.join(reasons)}")


def _nodes(client: Client) -> Finding:
    nodes = list(client.nodes())
    counts = Counter(node["status"] for node in nodes)
    if not counts:
        return Finding("nodes", False, "none: umbra-compute node add NAME, then start its agent")
    told = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    silent = [
        f"{node['name']} was heard {output.age(node['last_heartbeat_at'])} ago"
        for node in nodes
        if node["status"] == "offline" and node["last_heartbeat_at"] is not None
    ]
    if silent:
        told += f" ({', '.join(silent[:3])}{', …' if len(silent) > 3 else ''})"  # noqa: PLR2004
    if "online" not in counts:
        return Finding("nodes", False, f"{told}: start an agent, nothing can run")
    return Finding("nodes", True, told)


def _database(database: Database, *, forced: bool) -> list[Finding]:
    from umbra_compute import migrate  # noqa: PLC0415
    from umbra_compute.ops import health  # noqa: PLC0415

    async def look(pool: "Pool") -> tuple[list[str], dict[str, Any]]:
        return list(await migrate.pending(pool)), await health.examine(pool)

    try:
        reason = None if forced else _out_of_reach(database)
        if reason is not None:
            return [Finding("database", None, f"not looked at: {reason}")]
        with database.opened() as dsn:
            missing, seen = on_pool(dsn, look)
    except (ConfigurationError, DatabaseNotReachable, Failed) as exc:
        return [Finding("database", False, str(exc))]
    told = f"{', '.join(missing)} missing: umbra-compute migrate" if missing else "current"
    return [
        Finding("schema", not missing, told),
        _version(seen["version"]),
        _sweeps(seen["sweeps"]),
        _horizon(seen["horizon"]),
        *([] if seen["jobs"] is None else [_rows(seen["jobs"])]),
    ]


def _out_of_reach(database: Database) -> str | None:
    from umbra_compute import embedded  # noqa: PLC0415

    settings = database.settings()
    if settings.dsn is not None or embedded.find_running(settings.data_dir) is not None:
        return None
    return f"there is no DSN, and no PostgreSQL of ours runs in {settings.data_dir}"


def _version(version: str) -> Finding:
    if int(version.partition(".")[0]) >= OLDEST_POSTGRESQL:
        return Finding("postgresql", True, version)
    told = f"{version} is too old: upgrade it to {OLDEST_POSTGRESQL} or newer"
    return Finding("postgresql", False, told)


def _sweeps(ages_s: Mapping[str, float]) -> Finding:
    if not ages_s:
        return Finding("sweeps", False, "never ran: start a controller with umbra-compute serve")
    last_s = min(ages_s.values())
    told = f"the last one {last_s:.1f} s ago"
    if last_s > LATE_SWEEP_S:
        told += ": start a controller with umbra-compute serve, expired leases wait for it"
    return Finding("sweeps", last_s <= LATE_SWEEP_S, told)


def _horizon(held: Mapping[str, Any] | None) -> Finding:
    if held is None:
        return Finding("horizon", True, "nothing keeps dead rows alive")
    who = f"{held['holder']} {held['application']}"
    if held["pid"] is not None:
        who += f" (process {held['pid']}{_comma(held['state'])})"
    age = "" if held["age_s"] is None else f" for {held['age_s']:.1f} s"
    told = f"{who} holds it{age}, {held['xid_age']} transactions back"
    old_slot = held["age_s"] is None and held["xid_age"] > OLD_XIDS
    if old_slot or (held["age_s"] is not None and held["age_s"] > OLD_SNAPSHOT_S):
        return Finding("horizon", False, f"{told}, and keeps dead rows alive: end it")
    return Finding("horizon", True, told)


def _comma(state: str | None) -> str:
    return "" if state is None else f", {state}"


def _rows(rows: Mapping[str, int]) -> Finding:
    told = f"{rows['live']} live, {rows['dead']} dead"
    if rows["dead"] > ENOUGH_ROWS and rows["dead"] > MANY_DEAD * rows["live"]:
        return Finding("jobs", False, f"{told}: is autovacuum on, does the horizon hold it back?")
    return Finding("jobs", True, told)
