"""`queue`: what waits, by class."""

import json

import click

from umbra_compute.cli import output, session
from umbra_compute.client import Client


@click.command()
@session.calls_the_api
@output.json_option
def queue(client: Client, as_json: bool) -> None:
    """Show what waits, by requirement class: jobs that are alike for placement."""
    told = client.queue()
    if as_json:
        output.say_json(told)
        return
    columns: list[output.Column] = [
        ("KIND", lambda c: c["kind"]),
        ("REQUIRES", lambda c: json.dumps(c["requires"]) if c["requires"] else None),
        ("WAITING", lambda c: c["queued"]),
        ("LATER", lambda c: c["scheduled"]),
        ("RUNNING", lambda c: c["running"]),
        ("OLDEST S", lambda c: _seconds(c["oldest_queued_s"])),
        ("BLOCKED", lambda c: c["blocked"]),
    ]
    output.table(told["classes"], columns, empty="Nothing waits and nothing runs.")
    click.echo(
        f"{told['queued']} waiting, {told['scheduled']} later, {told['blocked']} blocked, "
        f"{told['running']} running.",
        err=True,
    )


def _seconds(age_s: float | None) -> str | None:
    return None if age_s is None else f"{age_s:.1f}"
