"""Who waits for what, in this process, and the word that passes between controllers.

A submission wakes waiting claims, an ending wakes waiting submitters, on every controller.
On the same controller the word does not go through the database at all. Nothing depends on a
word being heard: a lost one costs one poll.
"""

from umbra_compute.wake.relay import relaying
from umbra_compute.wake.waiting import ClaimWaiter, Wake

__all__ = ["ClaimWaiter", "Wake", "relaying"]
