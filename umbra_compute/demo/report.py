"""What came of it: whether all is there, what the book is like, and how the work recovered."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import attrs

from umbra_compute.cli.exits import Failed
from umbra_compute.demo.analyse import reading_ease
from umbra_compute.demo.book import Document

LONG_ENOUGH: Final = 300  # words: below, reading ease tells more of a table than of prose
_BUG: Final = "this is a bug."

Result = Mapping[str, Any]


@attrs.frozen
class Done:
    """A job as it ended, and all that happened to it."""

    job: Mapping[str, Any]
    events: Sequence[Mapping[str, Any]]

    def at(self, event: str, node_id: str | None = None) -> list[datetime]:
        """Return when the event happened, on this node or on any."""
        return [
            datetime.fromisoformat(one["at"])
            for one in self.events
            if one["event"] == event and node_id in (None, one["node_id"])
        ]

    @property
    def completed_by(self) -> str | None:
        return next((one["node_id"] for one in self.events if one["event"] == "completed"), None)


@attrs.frozen
class Kill:
    """Which node was killed, and when."""

    node_id: str
    at: datetime  # of this machine's clock, which is the database's too


@attrs.frozen
class Recovery:
    """Seconds after the kill, of each job that the killed agent held."""

    back_s: tuple[float, ...]
    done_s: tuple[float, ...]


@attrs.frozen
class Topic:
    """A topic of the book, from the results of its sections."""

    name: str
    words: int
    ease: float
    terms: tuple[str, ...]


def check(book: Sequence[Document], done: Sequence[Done]) -> None:
    """Raise Failed unless each document was completed, once."""
    incomplete = [one.job for one in done if one.job["status"] != "complete"]
    if incomplete:
        first = incomplete[0]
        raise Failed(
            f"{len(incomplete)} sections are not complete: {_BUG} The first is {first['status']}: "
            f"{first['error']}"
        )
    results = Counter((one.job["result"]["topic"], one.job["result"]["part"]) for one in done)
    missing = [document.key for document in book if (document.topic, document.part) not in results]
    if missing:
        raise Failed(f"{len(missing)} sections are missing, {missing[0]} among them: {_BUG}")
    twice = [one.job["id"] for one in done if len(one.at("completed")) != 1]
    if twice or len(done) != len(book):
        raise Failed(f"{len(done)} jobs for {len(book)} sections, {len(twice)} done twice: {_BUG}")


def recovery(done: Iterable[Done], kill: Kill) -> Recovery:
    """Return how the work of the killed agent went on. Raises Failed if it had none."""
    back, ended = [], []
    for one in done:
        expired = [at for at in one.at("lease_expired", kill.node_id) if at > kill.at]
        if expired:
            back.append((expired[0] - kill.at).total_seconds())
            ended.append((one.at("completed")[0] - kill.at).total_seconds())
    if not back:
        raise Failed(f"The killed agent held no job, although it was seen to: {_BUG}")
    return Recovery(tuple(back), tuple(ended))


def by_node(done: Iterable[Done]) -> Counter[str | None]:
    """Return how many jobs each node completed."""
    return Counter(one.completed_by for one in done)


def topics(results: Iterable[Result]) -> list[Topic]:
    """Return the topics of LONG_ENOUGH words or more, hardest to read first."""
    sections: dict[str, list[Result]] = {}
    for result in results:
        sections.setdefault(result["topic"], []).append(result)
    return sorted(_topics(sections), key=lambda topic: (topic.ease, topic.name))


def _topics(sections: Mapping[str, Sequence[Result]]) -> Iterator[Topic]:
    for name, parts in sections.items():
        counts = {n: sum(part[n] for part in parts) for n in ("words", "sentences", "syllables")}
        ease = reading_ease(**counts)
        if ease is not None and counts["words"] >= LONG_ENOUGH:
            yield Topic(name, counts["words"], ease, _terms(parts))


def _terms(parts: Iterable[Result]) -> tuple[str, ...]:
    weights: Counter[str] = Counter()
    for part in parts:
        for one in part["terms"]:
            weights[one["term"]] += one["weight"]
    return tuple(sorted(weights, key=lambda term: (-weights[term], term)))


def table(book: Sequence[Topic], *, ends: int = 4, terms: int = 5) -> Iterator[str]:
    """Yield the lines that show the hardest and the easiest topics."""
    yield f"  {'TOPIC':<22}{'EASE':>5}{'WORDS':>7}  MOST TELLING TERMS"
    for topic in (*book[:ends], None, *book[-ends:]):
        if topic is None:
            yield f"  {'…':<22}"
            continue
        told = ", ".join(topic.terms[:terms])
        yield f"  {topic.name:<22}{topic.ease:>5.0f}{topic.words:>7}  {told}"


def sentences(recovered: Recovery, name: str, *, lease_s: int, backoff_s: int) -> Iterator[str]:
    """Yield the lines that tell how long the recovery took."""
    back_s, done_s = max(recovered.back_s), max(recovered.done_s)
    yield f"{name} was killed with SIGKILL while it held {_jobs(len(recovered.back_s))}. After that"
    yield f"  all were back in the queue in  {back_s:5.1f} s  (a lease lasts {lease_s} s)"
    yield f"  all were done elsewhere in     {done_s:5.1f} s  (with a pause of {backoff_s} s)"


def _jobs(count: int) -> str:
    return f"{count} {'job' if count == 1 else 'jobs'}"
