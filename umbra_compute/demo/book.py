"""The text: the language reference that every CPython carries in pydoc_data.topics."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from umbra_compute.demo.analyse import terms_of

SECTION_CHARS: Final = 2000  # about a page


@attrs.frozen
class Document:
    """A section of a topic: whole paragraphs of about SECTION_CHARS."""

    topic: str
    part: int
    text: str

    @property
    def key(self) -> str:
        return f"{self.topic}/{self.part}"


def documents() -> list[Document]:
    """Return every topic of the reference, cut into sections at its paragraphs."""
    from pydoc_data.topics import topics  # noqa: PLC0415 - half a megabyte

    return [
        Document(topic, part, text)
        for topic, whole in sorted(topics.items())
        for part, text in enumerate(_sections(whole), 1)
    ]


def payloads(book: Iterable[Document]) -> list[dict[str, Any]]:
    """Return what each document's job is given: the text, and where else its terms are found.

    A job is complete in itself: the machine that runs it has neither the book nor its version.
    """
    terms = [(document, set(terms_of(document.text))) for document in book]
    found_in = Counter(term for _, held in terms for term in held)
    return [
        {
            **attrs.asdict(document),
            "documents": len(terms),
            "found_in": {term: found_in[term] for term in sorted(held)},
        }
        for document, held in terms
    ]


def _sections(whole: str) -> Iterator[str]:
    gathered: list[str] = []
    for paragraph in whole.split("\n\n"):
        if gathered and sum(map(len, gathered)) + len(paragraph) > SECTION_CHARS:
            yield "\n\n".join(gathered)
            gathered = []
        gathered.append(paragraph)
    yield "\n\n".join(gathered)
