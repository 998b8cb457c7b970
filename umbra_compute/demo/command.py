"""The demo's story: start, submit, watch, kill, recover, show."""

import signal
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import click

from umbra_compute.cli.exits import Failed
from umbra_compute.client import Client
from umbra_compute.demo import fleet, report
from umbra_compute.demo.book import Document, documents, payloads
from umbra_compute.demo.fleet import Fleet, Machine
from umbra_compute.demo.interrupts import Interrupts
from umbra_compute.demo.report import Done, Kill
from umbra_compute.demo.view import Picture, View

MACHINES: Final = (("mini", 1), ("desk", 2), ("rack", 4))  # name, jobs at a time
VICTIM: Final = "desk"
LEASE_S: Final = 5
BACKOFF_S: Final = 5  # of the controller, after the first attempt: SPEC §6
LOOK_S: Final = 0.5
KILL_AT: Final = 1 / 3  # of the work
LONGEST_S: Final = 300.0


@click.command()
def demo() -> None:
    """Watch real work run on three agents, one of which is killed in the middle.

    Starts a controller with a database of its own and three agents, has the Python language
    reference analysed section by section, kills one agent with SIGKILL while it works, and shows
    that nothing was lost. Takes under a minute and removes all that it made.
    """
    began = time.monotonic()
    book = documents()
    with Interrupts() as interrupts, fleet.running(interrupts) as running:
        click.echo("Starting a controller with a database of its own …")
        site = running.serve()
        with site.client as client:
            for name, max_jobs in MACHINES:
                running.add(site, name, max_jobs=max_jobs, lease_seconds=LEASE_S)
            click.echo(f"Three agents: {', '.join(f'{n} ({m} at a time)' for n, m in MACHINES)}.")
            _submit(client, book)
            kill = _watch(running, client, len(book))
            done = [Done(job, list(client.events(job["id"]))) for job in client.jobs()]
        report.check(book, done)
        _show(running.machines, done, kill)
    click.echo(f"\nAll of it, from start to clean-up, took {time.monotonic() - began:.0f} s.")


def _submit(client: Client, book: Sequence[Document]) -> None:
    jobs = [
        {
            "kind": "section.analyse",
            "payload": payload,
            "project_id": document.topic,
            "idempotency_key": document.key,
        }
        for document, payload in zip(book, payloads(book), strict=True)
    ]
    client.submit_batch(jobs)
    click.echo(f"Submitted {len(book)} sections of the Python language reference.\n")


def _watch(running: Fleet, client: Client, total: int) -> Kill:
    """Show the queue until all is done; kill one agent on the way.

    Raises Failed if another process ends, or if it takes too long.
    """
    victim = next(machine for machine in running.machines if machine.name == VICTIM)
    kill: Kill | None = None
    ends_at = time.monotonic() + LONGEST_S
    with View() as view:
        while True:
            picture = _picture(client, total)
            view.show(picture)
            running.check(but=None if kill is None else victim)
            if kill is None and picture.done >= total * KILL_AT:
                kill = _kill(client, victim, view)
            if picture.done == total:
                break
            if time.monotonic() > ends_at:
                raise Failed(f"Only {picture.done} of {total} were done after {LONGEST_S:g} s.")
            time.sleep(LOOK_S)
    if kill is None:
        raise Failed(f"{VICTIM} never held a job when it was to be killed: run it again.")
    return kill


def _picture(client: Client, total: int) -> Picture:
    queue = client.queue()
    placements = [job["placement"] for job in client.jobs(status="complete")]
    done_by = Counter(placed["node_id"] for placed in placements if placed is not None)
    left = queue["queued"] + queue["scheduled"] + queue["blocked"] + queue["running"]
    return Picture(total - left, total, queue, list(client.nodes()), done_by)


def _kill(client: Client, victim: Machine, view: View) -> Kill | None:
    """Kill the agent while it holds work; None if it holds none just now.

    It is stopped first: then it cannot hand in what it holds between the look and the kill. Two
    looks, for what it has sent already may arrive after the first.
    """
    victim.agent.send_signal(signal.SIGSTOP)
    held = _held(client, victim) & _held(client, victim)
    if not held:
        victim.agent.send_signal(signal.SIGCONT)
        return None
    victim.agent.kill()
    killed_at = datetime.now(UTC)
    view.say(f"{victim.name} is killed with SIGKILL, in the middle of its work.")
    return Kill(victim.node_id, killed_at)


def _held(client: Client, machine: Machine) -> set[str]:
    return {job["id"] for job in client.jobs(status="running", node_id=machine.node_id)}


def _show(machines: Sequence[Machine], done: Sequence[Done], kill: Kill) -> None:
    by_node = report.by_node(done)
    told = ", ".join(f"{by_node[machine.node_id]} by {machine.name}" for machine in machines)
    click.echo(f"\nAll {len(done)} sections are analysed, each exactly once: {told}.\n")
    results = [one.job["result"] for one in done]
    book = report.topics(results)
    words = sum(result["words"] for result in results)
    click.echo(
        f"{words} words. Of the {len(book)} topics with {report.LONG_ENOUGH} or more, the hardest "
        "and the easiest to read:\n"
    )
    for line in report.table(book):
        click.echo(line)
    click.echo()
    recovered = report.recovery(done, kill)
    for line in report.sentences(recovered, VICTIM, lease_s=LEASE_S, backoff_s=BACKOFF_S):
        click.echo(line)
