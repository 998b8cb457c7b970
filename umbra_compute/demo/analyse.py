"""What an agent's command does with one document: a small, real text analysis.

It needs the standard library alone. The payload comes on standard input:
{"topic", "part", "text", "documents", "found_in"}, where found_in says of each term of the text in
how many of all documents it is found. The result goes to the file UMBRA_RESULT_FILE.

Reading ease is Flesch's (1948): 206.835 - 1.015 x words per sentence - 84.6 x syllables per word.
60 to 70 is plain English, below 30 is hard. Syllables are counted as groups of vowels, less a
silent final e, which is right for about nine English words in ten.

A term tells most of a document when it is frequent here and rare elsewhere (tf-idf):
count here x log(documents / documents that hold it).
"""

import json
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

TERMS: Final = 8
LONGEST: Final = 3
_WORD: Final = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*")
_SENTENCE: Final = re.compile(r"[.!?]+[)\"']*(?:\s|$)")
_VOWELS: Final = re.compile(r"[aeiouy]+")
_SHORTEST_TERM: Final = 4  # letters; what is shorter is mostly grammar


def analyse(text: str, documents: int, found_in: Mapping[str, int]) -> dict[str, Any]:
    """Return counts, reading ease, the longest words and the most telling terms of a text."""
    words = [word.lower() for word in _WORD.findall(text)]
    counts = {
        "words": len(words),
        "sentences": len(_SENTENCE.findall(text)),
        "syllables": sum(map(count_syllables, words)),
    }
    return {
        "characters": len(text),
        **counts,
        "words_per_sentence": _rounded(per_sentence(**counts)),
        "reading_ease": _rounded(reading_ease(**counts)),
        "longest_words": sorted(set(words), key=lambda word: (-len(word), word))[:LONGEST],
        "terms": _telling(Counter(terms_of(text)), documents, found_in),
    }


def per_sentence(*, words: int, sentences: int, syllables: int) -> float | None:
    """Return words per sentence; a text without a full stop is one. None: there is no word."""
    return words / max(1, sentences) if words > 0 else None


def reading_ease(*, words: int, sentences: int, syllables: int) -> float | None:
    """Return Flesch's reading ease, None of a text without a word."""
    length = per_sentence(words=words, sentences=sentences, syllables=syllables)
    return None if length is None else 206.835 - 1.015 * length - 84.6 * syllables / words


def count_syllables(word: str) -> int:
    """Return the syllables of an English word in lower case, at least one."""
    groups = len(_VOWELS.findall(word))
    silent = word.endswith("e") and not word.endswith("le") and groups > 1
    return max(1, groups - silent)


def terms_of(text: str) -> list[str]:
    """Return the words of a text that could tell something of it, in lower case, with repeats."""
    return [word.lower() for word in _WORD.findall(text) if len(word) >= _SHORTEST_TERM]


def _telling(
    counts: Counter[str], documents: int, found_in: Mapping[str, int]
) -> list[dict[str, Any]]:
    weights = {
        term: round(count * math.log(documents / found_in[term]), 2)
        for term, count in counts.items()
    }
    ordered = sorted(weights, key=lambda term: (-weights[term], term))
    return [{"term": term, "weight": weights[term]} for term in ordered[:TERMS]]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def main() -> None:
    """Read the payload, write the result."""
    payload = json.load(sys.stdin)
    told = analyse(payload["text"], payload["documents"], payload["found_in"])
    result = {"topic": payload["topic"], "part": payload["part"], **told}
    Path(os.environ["UMBRA_RESULT_FILE"]).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
