"""`model`: what models need."""

import click

from umbra_compute.cli import output, session
from umbra_compute.client import Client


@click.group()
def model() -> None:
    """Say what models need; jobs name them, and placement counts it in."""


@model.command("put")
@session.calls_the_api
@click.argument("slug")
@click.option("--kind", help="What sort of model it is, in your words.")
@click.option("--vram", "vram_min_mb", type=int, metavar="MB", help="VRAM that it needs.")
@click.option("--vram-preferred", "vram_preferred_mb", type=int, metavar="MB", help="To be quick.")
@click.option("--ram", "ram_min_mb", type=int, metavar="MB", help="RAM that it needs.")
@click.option("--accelerator", "requires_accelerators", multiple=True, help="Such as cuda.")
@click.option("--reference-throughput", type=float, help="On a device of factor 1.")
@click.option("--load-seconds", type=float, help="How long it takes to load.")
@output.json_option
def put(client: Client, slug: str, as_json: bool, **needs: object) -> None:
    """Register a model, or replace what was said of it."""
    given = {name: value for name, value in needs.items() if value is not None and value != ()}
    made = client.put_model(slug, **given)
    output.done(made, f"Registered {slug}.", as_json=as_json)


@model.command("list")
@session.calls_the_api
@output.json_option
def list_models(client: Client, as_json: bool) -> None:
    """List the registered models."""
    models = list(client.models())
    if as_json:
        output.say_json({"models": models})
        return
    columns: list[output.Column] = [
        ("MODEL", lambda m: m["slug"]),
        ("KIND", lambda m: m["kind"]),
        ("VRAM MB", lambda m: m["vram_min_mb"]),
        ("RAM MB", lambda m: m["ram_min_mb"]),
        ("LOAD S", lambda m: m["load_seconds"]),
        ("ACCELERATORS", lambda m: ",".join(m["requires_accelerators"])),
    ]
    output.table(
        models, columns, empty="There is no model: umbra-compute model put SLUG --vram MB."
    )


@model.command("rm")
@session.calls_the_api
@click.argument("slug")
@output.json_option
def remove(client: Client, slug: str, as_json: bool) -> None:
    """Forget a model; jobs that name it cannot be placed any more."""
    client.delete_model(slug)
    output.done({"slug": slug}, f"Forgot {slug}.", as_json=as_json)
