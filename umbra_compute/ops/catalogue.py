"""Requirement classes in memory. They never change, so a class read once is known for good;
what its models need changes with the registry, whose version is checked in each claim.

A cache only: dropping it costs a statement, and two controllers never disagree on what it says.
"""

from collections.abc import Iterable, Sequence
from typing import Final
from uuid import UUID

import attrs

from umbra_compute.db import Conn
from umbra_compute.model.jobs import ClassKey
from umbra_compute.model.placement import Need, NodeView
from umbra_compute.policy import placement
from umbra_compute.policy.classes import class_row
from umbra_compute.policy.needs import need_of
from umbra_compute.store import classes

MOST_IDS: Final = 100_000  # classes; about 30 MB. Beyond it the memory is dropped and filled again


@attrs.define
class Catalogue:
    """What this controller remembers of requirement classes."""

    _ids: dict[tuple[UUID, bytes], int] = attrs.Factory(dict)
    _needs: dict[int, tuple[int, Need]] = attrs.Factory(dict)

    async def ids_of(self, conn: Conn, keys: Sequence[ClassKey]) -> list[int]:
        """Return the class id of each key, making those that do not exist.

        Ids made here are only remembered by `remember`, after the commit.
        """
        found = {(k.organization_id, k.hash): k for k in keys}
        unknown = [key for at, key in found.items() if at not in self._ids]
        known = {at: self._ids[at] for at in found if at in self._ids}
        if unknown:
            await classes.ensure(conn, unknown)
            known.update(await classes.ids(conn, unknown))
        return [known[k.organization_id, k.hash] for k in keys]

    def remember(self, keys: Sequence[ClassKey], ids: Sequence[int]) -> None:
        """Keep ids whose rows are committed."""
        if len(self._ids) + len(keys) > MOST_IDS:
            self._ids.clear()
        for key, class_id in zip(keys, ids, strict=True):
            self._ids[key.organization_id, key.hash] = class_id

    async def needs_of(
        self, conn: Conn, class_ids: Iterable[int], registry_version: int
    ) -> dict[int, Need]:
        """Return what each class needs by the registry of this version."""
        wanted = set(class_ids)
        missing = [i for i in wanted if self._version(i) != registry_version]
        if missing:
            if len(self._needs) + len(missing) > MOST_IDS:
                self._needs.clear()
            for row in await classes.load(conn, missing):
                need = need_of(
                    class_row(row["id"], row["kind"], row["requires"], row["prefer"], row["models"])
                )
                self._needs[row["id"]] = (row["registry_version"], need)
        return {i: self._needs[i][1] for i in wanted if i in self._needs}

    def might_run(self, node: NodeView, class_id: int) -> bool:
        """Tell whether the node could run the class; an unknown class may be worth a look."""
        known = self._needs.get(class_id)
        return known is None or placement.might_run(node, known[1])

    def _version(self, class_id: int) -> int | None:
        known = self._needs.get(class_id)
        return None if known is None else known[0]
