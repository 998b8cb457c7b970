"""`serve`: run the controller."""

import os
from pathlib import Path

import click

from umbra_compute import config as settings_of


@click.command()
@click.option("--config", type=click.Path(), help="The settings file (UMBRA_CONFIG).")
@click.option("--listen", help="HOST:PORT (UMBRA_LISTEN; 127.0.0.1:8440).")
@click.option("--dsn", help="A PostgreSQL 15 or newer (UMBRA_DSN); without: one of our own.")
@click.option("--data-dir", help="Where our own PostgreSQL lives (UMBRA_DATA_DIR).")
@click.option("--heartbeat-stale-s", help="Silence in seconds that makes a node offline (45).")
@click.option("--heartbeat-interval-s", help="Seconds between a node's heartbeats (15).")
@click.option("--sweep-interval-s", help="Seconds between sweeps (1).")
@click.option("--cancel-grace-s", help="Seconds that a node has to confirm a cancel (30).")
@click.option("--pool-size", help="Connections to the database (16).")
@click.option("--tls-cert", help="Certificate chain, PEM.")
@click.option("--tls-key", help="Its private key, PEM.")
@click.option("--log-format", help="json or console (console on a terminal).")
def serve(config: str | None, **flags: str | None) -> None:
    """Run the controller until SIGTERM or Ctrl-C.

    It migrates the database, sweeps expired leases and silent nodes, and serves the API. The
    address is printed when it accepts connections.
    """
    settings = settings_of.load(flags, os.environ, None if config is None else Path(config))
    from umbra_compute import app, log  # noqa: PLC0415 - a wrong setting is told at once

    log.configure(settings.log_format)
    if settings.dsn is None:
        click.echo(f"PostgreSQL: our own, in {settings.data_dir}", err=True)
    app.run(settings, lambda url: click.echo(f"Listening on {url}"))
