"""How busy the processors were, between two looks."""

from pathlib import Path

import attrs

STAT = Path("/proc/stat")
_IDLE = (3, 4)  # proc(5): idle and iowait among user, nice, system, idle, iowait, irq, …
_GUESTS = 8  # from here on counted twice: guest time is in user time already


@attrs.define
class Busy:
    """Keeps the counters of the last look."""

    path: Path = STAT
    _last: tuple[int, int] | None = None

    def since_last_pct(self) -> float | None:
        """Return the share of time that was not idle since the last call; None: not known."""
        before, self._last = self._last, self._look()
        if before is None or self._last is None:
            return None
        idle, total = (now - then for now, then in zip(self._last, before, strict=True))
        if total <= 0 or not 0 <= idle <= total:  # counters may step back
            return None
        return round(100.0 * (total - idle) / total, 1)

    def _look(self) -> tuple[int, int] | None:
        try:
            with self.path.open(encoding="ascii") as file:
                name, *words = file.readline().split()
            ticks = [int(word) for word in words[:_GUESTS]]
        except (OSError, ValueError):
            return None
        if name != "cpu" or len(ticks) <= max(_IDLE):
            return None
        return sum(ticks[n] for n in _IDLE), sum(ticks)
