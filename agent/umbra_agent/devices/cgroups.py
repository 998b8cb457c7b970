"""The groups that this process is in, of both versions, and the numbers in their files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

NO_LIMIT: Final = ("max", "-1")


@attrs.define
class Tree:
    """A file system's root, or a test's. What is there and makes no sense goes to `doubts`."""

    root: Path
    doubts: list[str] = attrs.Factory(list)

    def v2(self) -> Iterator[Path]:
        """Yield the folder of this process's group and those above it."""
        base = self.root / "sys/fs/cgroup"
        if (base / "cgroup.controllers").exists():
            path = next((path for names, path in self._own() if names == ""), "/")
            yield from _upwards(base, path)

    def v1(self, controller: str) -> Iterator[Path]:
        base = self.root / "sys/fs/cgroup" / controller
        if base.is_dir():
            own = self._own()
            path = next((path for names, path in own if controller in names.split(",")), "/")
            yield from _upwards(base, path)

    def number(self, path: Path) -> int | None:
        """Return the number in a file; None: no file, no limit, or nothing that makes sense."""
        text = self.text(path)
        if text is None or text in NO_LIMIT:
            return None
        if not text.isascii() or not text.isdigit():
            self._doubt(path, "makes no sense")
            return None
        return int(text)

    def fields(self, path: Path) -> dict[str, int]:
        """Return the lines `name number` of a file."""
        found = {}
        for line in (self.text(path) or "").splitlines():
            words = line.split()
            if len(words) >= 2 and words[1].isdigit():  # noqa: PLR2004
                found[words[0]] = int(words[1])
        return found

    def text(self, path: Path) -> str | None:
        try:
            return path.read_text(encoding="ascii", errors="replace").strip()
        except FileNotFoundError:
            return None
        except OSError as exc:
            self._doubt(path, f"cannot be read ({exc.strerror})")
            return None

    def _own(self) -> list[tuple[str, str]]:
        lines = (self.text(self.root / "proc/self/cgroup") or "").splitlines()
        parts = [line.split(":", 2) for line in lines]
        return [(part[1], part[2]) for part in parts if len(part) == 3]  # noqa: PLR2004

    def _doubt(self, path: Path, what: str) -> None:
        self.doubts.append(f"/{path.relative_to(self.root)} {what}")


def _upwards(base: Path, path: str) -> Iterator[Path]:
    """Yield the group's folder and those above it; in a container only the last may exist."""
    folder = base / path.strip("/")
    while True:
        if folder.is_dir():
            yield folder
        if folder == base or base not in folder.parents:
            return
        folder = folder.parent
