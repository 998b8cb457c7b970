"""Scopes on the command line: comma-separated, each a known one."""

from enum import StrEnum
from typing import Any

import click


class Scopes(click.ParamType[list[str]]):
    """Several scopes of one enum. The controller would refuse a wrong one too, but only after
    what comes before it is done."""

    name = "scopes"

    def __init__(self, known: type[StrEnum]) -> None:
        self._known = tuple(str(scope) for scope in known)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[str]:
        if isinstance(value, list):  # a default that was converted
            return value
        wanted = [scope.strip() for scope in str(value).split(",") if scope.strip()]
        for scope in wanted:
            if scope not in self._known:
                known = ", ".join(self._known)
                self.fail(f"there is no scope {scope!r}; there are {known}", param, ctx)
        if not wanted:
            self.fail("it names no scope", param, ctx)
        return wanted
