"""What holds for every statement, so that a new one is checked by being written."""

import pkgutil
from importlib import import_module

import pytest

from umbra_compute import store
from umbra_compute.db import Pool

MODULES = [module.name for module in pkgutil.iter_modules(store.__path__)]
STATEMENTS = [
    (module, name)
    for module in MODULES
    for name, value in vars(import_module(f"umbra_compute.store.{module}")).items()
    if name.isupper() and not name.startswith("_") and type(value) is str
]


@pytest.mark.parametrize(("module", "name"), STATEMENTS, ids=lambda part: part)
async def test_a_statement_names_itself_and_fits_the_schema(
    pool: Pool, module: str, name: str
) -> None:
    sql = getattr(import_module(f"umbra_compute.store.{module}"), name)
    assert sql.startswith(f"/* {module}.{name.lower()} */\n")
    async with pool.acquire() as conn:
        await conn.prepare(sql)
