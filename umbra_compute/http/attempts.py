"""How often a wrong secret was shown for one prefix from one address."""

from collections import OrderedDict, deque
from math import ceil
from typing import Final

from umbra_compute.errors import RateLimited

ALLOWED: Final = 10
WINDOW_S: Final = 60.0
"""Ten wrong secrets a minute: a person with an old key notices, a guesser of 256 bits gets none."""

PLACES: Final = 10_000
"""Pairs of prefix and address remembered; beyond that the one that failed longest ago is let go."""

Place = tuple[str, str]


class Attempts:
    """Times of failures, on a clock that the caller reads."""

    def __init__(self) -> None:
        self._failed: OrderedDict[Place, deque[float]] = OrderedDict()

    def check(self, place: Place, now: float) -> None:
        """Raise RateLimited if `place` has failed ALLOWED times within WINDOW_S."""
        times = self._failed.get(place)
        if times is not None and len(times) == ALLOWED and now - times[0] < WINDOW_S:
            raise RateLimited(ceil(WINDOW_S - (now - times[0])))

    def failed(self, place: Place, now: float) -> None:
        self._failed.setdefault(place, deque(maxlen=ALLOWED)).append(now)
        self._failed.move_to_end(place)
        while len(self._failed) > PLACES:
            self._failed.popitem(last=False)
