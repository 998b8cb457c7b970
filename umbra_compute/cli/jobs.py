"""`job`: work."""

import json
import sys
from pathlib import Path
from typing import Any, Final

import click

from umbra_compute.cli import output, session
from umbra_compute.cli.exits import Failed
from umbra_compute.cli.naming import node_id_named
from umbra_compute.client import Client
from umbra_compute.client.shapes import Job

WATCH_S: Final = 1.0  # between looks at progress; an end is heard of at once
ERROR_CHARS: Final = 300  # of an error in a sentence; job show has the whole of it

FACTS: Final = (
    *("id", "kind", "status", "blocked", "priority", "attempt", "max_attempts", "project_id"),
    *("requested_by", "requires", "prefer", "idempotency_key", "not_before", "start_by"),
    *("created_at", "started_at", "finished_at", "lease_owner", "lease_expires_at"),
    *("placement", "progress", "payload", "result", "error"),
)


@click.group()
def job() -> None:
    """Submit, list, show, watch and cancel jobs."""


@job.command("submit")
@session.calls_the_api
@click.argument("kind")
@click.option("--payload", help="JSON.")
@click.option("--payload-file", help="A file of JSON; - is standard input.")
@click.option("--requires", help="JSON: vram_min_mb, models, trust_domains, …")
@click.option("--vram", type=int, metavar="MB", help="VRAM that it needs.")
@click.option("--ram", type=int, metavar="MB", help="RAM that it needs.")
@click.option("--model", "models", multiple=True, help="A model that it uses; may be repeated.")
@click.option("--accelerator", "accelerators", multiple=True, help="Such as cuda.")
@click.option("--trust-domain", "trust_domains", multiple=True, help="Where it may run.")
@click.option("--max-runtime", type=int, metavar="S", help="Seconds that an attempt may take.")
@click.option("--priority", type=int, help="Lower goes first (100).")
@click.option("--delay", type=float, metavar="S", help="Seconds until it may start.")
@click.option("--start-by", type=float, metavar="S", help="Fail if it has not started by then.")
@click.option("--max-attempts", type=int, help="How often it is tried (3).")
@click.option("--idempotency-key", help="The same key and body again is the same job.")
@click.option("--project", help="A label to list by.")
@click.option("--wait", is_flag=True, help="Wait for its end; exit 1 if it is not complete.")
@output.json_option
def submit(client: Client, kind: str, wait: bool, as_json: bool, **given: Any) -> None:
    """Submit a job of KIND and print its id."""
    made = client.submit(_body(kind, given))
    if not wait:
        output.say_json(made) if as_json else click.echo(made["id"])
        return
    _say_ended(client.wait(made["id"]), as_json=as_json)


@job.command("list")
@session.calls_the_api
@click.option("--status", help="queued, running, blocked, complete, failed, …")
@click.option("--kind", help="Only those of this kind.")
@click.option("--project", help="Only those with this label.")
@click.option("--node", help="Only those that ran, or run, on this node: a name or an id.")
@click.option("--limit", type=click.IntRange(1), default=50, help="How many at most (50).")
@output.json_option
def list_jobs(
    client: Client,
    status: str | None,
    kind: str | None,
    project: str | None,
    node: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List jobs, newest first."""
    node_id = None if node is None else node_id_named(client, node)
    found = client.jobs(limit=limit, status=status, kind=kind, project_id=project, node_id=node_id)
    jobs = list(found)
    if as_json:
        output.say_json({"jobs": jobs})
        return
    columns: list[output.Column] = [
        ("ID", lambda j: j["id"]),
        ("KIND", lambda j: j["kind"]),
        ("STATUS", lambda j: j["status"]),
        ("ATTEMPT", lambda j: f"{j['attempt']}/{j['max_attempts']}"),
        ("NODE", lambda j: None if j["placement"] is None else j["placement"]["node_name"]),
        ("AGE", lambda j: output.age(j["created_at"])),
        ("ERROR", lambda j: None if j["error"] is None else j["error"][:60]),
    ]
    output.table(jobs, columns, empty="There is no such job.")


@job.command("show")
@session.calls_the_api
@click.argument("job_id")
@output.json_option
def show(client: Client, job_id: str, as_json: bool) -> None:
    """Show a job and what happened to it."""
    found = client.job(job_id)
    events = list(client.events(job_id))
    if as_json:
        output.say_json({**found, "events": events})
        return
    output.facts(found, FACTS)
    click.echo()
    columns: list[output.Column] = [
        ("AT", lambda e: e["at"]),
        ("EVENT", lambda e: e["event"]),
        ("ATTEMPT", lambda e: e["attempt"]),
        ("NODE", lambda e: e["node_id"]),
        ("DETAIL", lambda e: e["detail"]),
    ]
    output.table(events, columns, empty="Nothing has happened yet.")


@job.command("watch")
@session.calls_the_api
@click.argument("job_id")
@output.json_option
def watch(client: Client, job_id: str, as_json: bool) -> None:
    """Follow a job to its end; exit 1 if it is not complete then."""
    live = sys.stderr.isatty() and not as_json
    last = ""
    for found in client.watch(job_id, every_s=WATCH_S):
        line = _line(found)
        if live:
            output.live(line)
        elif line != last and not as_json:
            click.echo(output.printable(line), err=True)
        last = line
    if live:
        click.echo(err=True)
    _say_ended(found, as_json=as_json)


@job.command("cancel")
@session.calls_the_api
@click.argument("job_id")
@output.json_option
def cancel(client: Client, job_id: str, as_json: bool) -> None:
    """End a waiting job; ask the machine that runs it to stop."""
    found = client.cancel(job_id)
    asked = found["status"] == "running"
    told = "is asked to stop" if asked else f"is {found['status']}"
    output.done(found, f"Job {job_id} {told}.", as_json=as_json)


def _body(kind: str, given: dict[str, Any]) -> dict[str, Any]:
    requires = _json(given["requires"], "--requires", {})
    if not isinstance(requires, dict):
        raise click.UsageError("--requires is a JSON object.")
    shorthand = {
        "vram_min_mb": given["vram"],
        "ram_min_mb": given["ram"],
        "models": list(given["models"]),
        "accelerators": list(given["accelerators"]),
        "trust_domains": list(given["trust_domains"]),
        "max_runtime_s": given["max_runtime"],
    }
    requires |= {name: value for name, value in shorthand.items() if value not in (None, [])}
    body = {
        "priority": given["priority"],
        "delay_s": given["delay"],
        "start_by_s": given["start_by"],
        "max_attempts": given["max_attempts"],
        "idempotency_key": given["idempotency_key"],
        "project_id": given["project"],
    }
    told = {name: value for name, value in body.items() if value is not None}
    return {"kind": kind, "payload": _payload(given), "requires": requires, **told}


def _payload(given: dict[str, Any]) -> Any:
    if given["payload"] is not None and given["payload_file"] is not None:
        raise click.UsageError("Give --payload or --payload-file, not both.")
    if given["payload_file"] is None:
        return _json(given["payload"], "--payload", None)
    if given["payload_file"] == "-":
        return _json(sys.stdin.read(), "standard input", None)
    try:
        text = Path(given["payload_file"]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise click.UsageError(f"{given['payload_file']} cannot be read: {exc}.") from None
    return _json(text, given["payload_file"], None)


def _json(text: str | None, where: str, absent: Any) -> Any:
    if text is None:
        return absent
    try:
        return json.loads(text)
    except ValueError as exc:
        raise click.UsageError(f"{where} is no JSON: {exc}.") from None


def _line(found: Job) -> str:
    parts = [found["status"]]
    if found["placement"] is not None:
        parts.append(f"on {found['placement']['node_name']}")
    if found["attempt"] > 1:
        parts.append(f"attempt {found['attempt']}/{found['max_attempts']}")
    progress = found["progress"] if found["status"] == "running" else None
    if progress is not None and progress["fraction"] is not None:
        parts.append(f"{progress['fraction']:.0%}")
    if progress is not None and progress["message"] is not None:
        parts.append(progress["message"])
    if found["blocked"] is not None:
        parts.append(found["blocked"])
    return "  ".join(parts).replace("\n", " ")


def _say_ended(found: Job, *, as_json: bool) -> None:
    """Print the job, or its result alone. Raises Failed if it is not complete."""
    complete = found["status"] == "complete"
    if as_json:
        output.say_json(found)
    elif complete:
        output.say_json(found["result"])
    if not complete:
        error = "" if found["error"] is None else f": {found['error'][:ERROR_CHARS]}"
        raise Failed(f"Job {found['id']} is {found['status']}{error}".replace("\n", " "))
