"""The demo's story: start, submit, watch, kill, recover, show."""

import signal
import statistics
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import FrameType
from typing import Any, Final

import attrs
import click

from umbra_compute.cli.exits import Failed
from umbra_compute.client import Client
from umbra_compute.demo import fleet
from umbra_compute.demo.book import documents
from umbra_compute.demo.fleet import Fleet, Machine
from umbra_compute.demo.view import View

MACHINES: Final = (("mini", 1), ("desk", 2), ("rack", 4))  # name, jobs at a time
VICTIM: Final = "desk"
LEASE_S: Final = 5
LOOK_S: Final = 0.25
KILL_AT: Final = 1 / 3  # of the work
LONGEST_S: Final = 300.0

Job = Mapping[str, Any]


@attrs.frozen
class Kill:
    """What was killed, when, and what it held at that moment."""

    machine: Machine
    at: datetime
    held: tuple[str, ...]


@click.command()
def demo() -> None:
    """Watch real work run on three agents, one of which is killed in the middle.

    Starts a controller with a database of its own and three agents, has the Python language
    reference analysed section by section, kills one agent with SIGKILL while it works, and shows
    that nothing was lost. Takes under a minute and removes all that it made.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    began = time.monotonic()
    click.echo("Starting a controller and its database …")
    with fleet.running() as running:
        for name, max_jobs in MACHINES:
            running.add(name, max_jobs=max_jobs, lease_seconds=LEASE_S)
        click.echo(f"Three agents: {', '.join(f'{n} ({m} at a time)' for n, m in MACHINES)}.")
        jobs, kill = _work(running)
        _show(running.client, jobs, kill)
    click.echo(f"All of it, start to clean-up: {time.monotonic() - began:.0f} s.")


def _work(running: Fleet) -> tuple[list[Job], Kill]:
    """Submit everything, kill one agent at a third of it, and wait for the end."""
    client = running.client
    sections = documents()
    client.submit_batch(
        [
            {
                "kind": "section.analyse",
                "payload": attrs.asdict(section),
                "project_id": section.topic,
                "idempotency_key": f"{section.topic}/{section.part}",
            }
            for section in sections
        ]
    )
    total = len(sections)
    click.echo(f"Submitted {total} sections of the Python language reference.")
    kill: Kill | None = None
    ends_at = time.monotonic() + LONGEST_S
    with View(total) as view:
        while True:
            queue = client.queue()
            done = total - queue["queued"] - queue["scheduled"] - queue["running"]
            view.show(done, queue, list(client.nodes()))
            if kill is None and done >= total * KILL_AT:
                kill = _kill(running)
                if kill is not None:
                    view.say(
                        f"Killed {kill.machine.name} with SIGKILL; it held {len(kill.held)} jobs."
                    )
            if done == total and kill is not None:
                return list(client.jobs()), kill
            if time.monotonic() > ends_at:
                raise Failed(f"Only {done} of {total} sections were done after {LONGEST_S:g} s.")
            time.sleep(LOOK_S)


def _kill(running: Fleet) -> Kill | None:
    """Kill the victim while it holds work; None if it held none just then.

    Stopped first: a stopped agent cannot hand in what it holds between the look and the kill.
    """
    machine = next(m for m in running.machines if m.name == VICTIM)
    machine.agent.send_signal(signal.SIGSTOP)
    held = [
        job["id"]
        for job in running.client.jobs(status="running", node_id=machine.node_id)
        if job["lease_owner"] == machine.node_id
    ]
    if not held:
        machine.agent.send_signal(signal.SIGCONT)
        return None
    machine.agent.kill()
    return Kill(machine, datetime.now(UTC), tuple(held))


def _show(client: Client, jobs: Sequence[Job], kill: Kill) -> None:
    incomplete = [job for job in jobs if job["status"] != "complete"]
    if incomplete:
        raise Failed(f"{len(incomplete)} sections are not complete: this is a bug.")
    once = {(job["result"]["topic"], job["result"]["part"]) for job in jobs}
    if len(once) != len(jobs) or len(jobs) != len(documents()):
        raise Failed("Some section is missing or there twice: this is a bug.")
    click.echo(f"\nAll {len(jobs)} sections are analysed, each once.")
    _show_book(jobs)
    _show_recovery(client, jobs, kill)


def _show_book(jobs: Sequence[Job]) -> None:
    topics: dict[str, list[dict[str, Any]]] = {}
    for job in jobs:
        topics.setdefault(job["result"]["topic"], []).append(job["result"])
    eases = {
        topic: statistics.mean(one["reading_ease"] for one in parts if one["words"])
        for topic, parts in topics.items()
        if any(one["words"] for one in parts)
    }
    ordered = sorted(eases, key=lambda topic: eases[topic])
    words = sum(job["result"]["words"] for job in jobs)
    click.echo(f"{len(topics)} topics, {words} words. Hardest and easiest to read:\n")
    click.echo(f"  {'TOPIC':<24}{'EASE':>6}{'WORDS':>8}  MOST TELLING TERMS")
    for topic in (*ordered[:3], *ordered[-3:]):
        parts = topics[topic]
        terms = ", ".join(parts[0]["terms"][:4])
        count = sum(one["words"] for one in parts)
        click.echo(f"  {topic:<24}{eases[topic]:>6.0f}{count:>8}  {terms}")


def _show_recovery(client: Client, jobs: Sequence[Job], kill: Kill) -> None:
    held = [job for job in jobs if job["id"] in kill.held]
    back_s, done_s = [], []
    for job in held:
        for event in client.events(job["id"]):
            since_s = (datetime.fromisoformat(event["at"]) - kill.at).total_seconds()
            if event["event"] == "lease_expired":
                back_s.append(since_s)
            if event["event"] == "completed":
                done_s.append(since_s)
    if len(back_s) != len(held) or len(done_s) != len(held):
        raise Failed("A job of the killed agent did not come back: this is a bug.")
    click.echo(f"\n{kill.machine.name} was killed with SIGKILL while it held {len(held)} jobs:")
    click.echo(f"  back in the queue after  {max(back_s):5.1f} s  (their lease: {LEASE_S} s)")
    click.echo(f"  done on another machine  {max(done_s):5.1f} s  after the kill")


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
