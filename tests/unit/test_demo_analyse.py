"""The demo's text analysis, its book, and what its report finds wrong."""

import json
import math
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from umbra_compute.cli.exits import Failed
from umbra_compute.demo import report
from umbra_compute.demo.analyse import analyse, count_syllables, reading_ease, terms_of
from umbra_compute.demo.book import SECTION_CHARS, Document, documents, payloads
from umbra_compute.demo.report import Done, Kill

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
BOOK = [Document("if", 1, "one"), Document("if", 2, "two")]


@pytest.mark.parametrize(
    ("word", "syllables"),
    [("the", 1), ("cat", 1), ("make", 1), ("table", 2), ("syllable", 3), ("idea", 2), ("rhythm", 1),
     ("queue", 1), ("hmm", 1)],
)  # fmt: skip
def test_syllables_are_groups_of_vowels_less_a_silent_e(word: str, syllables: int) -> None:
    assert count_syllables(word) == syllables


def test_reading_ease_is_flesch_s() -> None:
    # "The cat sat on the mat." is the usual example: 116.1.
    told = analyse("The cat sat on the mat.", 1, {})
    assert (told["words"], told["sentences"], told["syllables"]) == (6, 1, 6)
    assert told["words_per_sentence"] == 6.0
    assert told["reading_ease"] == 116.1


def test_a_text_without_a_word_has_no_reading_ease() -> None:
    told = analyse("1 + 1 = 2", 1, {})
    assert (told["words"], told["words_per_sentence"], told["reading_ease"]) == (0, None, None)
    assert (told["terms"], told["longest_words"]) == ([], [])
    assert reading_ease(words=0, sentences=0, syllables=0) is None


def test_a_text_without_a_full_stop_is_one_sentence() -> None:
    assert analyse("two words", 1, {"words": 1})["words_per_sentence"] == 2.0


def test_a_term_tells_most_that_is_frequent_here_and_rare_elsewhere() -> None:
    told = analyse("Lambda lambda value value value.", 100, {"lambda": 2, "value": 90})
    assert told["terms"] == [
        {"term": "lambda", "weight": round(2 * math.log(100 / 2), 2)},
        {"term": "value", "weight": round(3 * math.log(100 / 90), 2)},
    ]
    assert told["longest_words"] == ["lambda", "value"]


def test_terms_are_words_of_four_letters_or_more() -> None:
    assert terms_of("It's a well-known if-clause: don't __init__ 3 def") == [
        *("it's", "well-known", "if-clause", "don't", "init"),
    ]


def test_the_book_is_cut_at_paragraphs_and_nothing_is_lost() -> None:
    book = documents()
    assert len(book) > 200
    assert len({document.key for document in book}) == len(book)
    whole = "\n\n".join(document.text for document in book if document.topic == "if")
    from pydoc_data.topics import topics  # noqa: PLC0415 - half a megabyte

    assert whole == topics["if"]
    assert all("\n\n" not in one.text for one in book if len(one.text) > 2 * SECTION_CHARS)


def test_a_payload_carries_all_that_its_analysis_needs() -> None:
    first, second = payloads([Document("a", 1, "queue queue node"), Document("b", 1, "node")])
    assert first == {
        **{"topic": "a", "part": 1, "text": "queue queue node", "documents": 2},
        "found_in": {"node": 2, "queue": 1},
    }
    assert second["found_in"] == {"node": 2}
    assert max(len(json.dumps(one)) for one in payloads(documents())) < 16_000


def test_the_program_writes_its_result_to_the_file_that_it_is_told(tmp_path: Path) -> None:
    [payload] = payloads([Document("if", 1, "The if statement.")])
    subprocess.run(
        [sys.executable, "-m", "umbra_compute.demo.analyse"],
        input=json.dumps(payload).encode(),
        env={"UMBRA_RESULT_FILE": str(tmp_path / "result")},
        check=True,
    )
    result = json.loads((tmp_path / "result").read_text())
    assert (result["topic"], result["part"], result["words"]) == ("if", 1, 3)


def done(part: int, *events: tuple[str, str, float], **job: Any) -> Done:
    whole = {"id": str(part), "status": "complete", "error": None, **job}
    whole.setdefault("result", {"topic": "if", "part": part})
    return Done(whole, [_event(*event) for event in events])


def _event(event: str, node_id: str, after_s: float) -> Mapping[str, Any]:
    return {
        "event": event,
        "node_id": node_id,
        "at": (AT + timedelta(seconds=after_s)).isoformat(),
    }


ONE = done(1, ("claimed", "a", 0), ("completed", "a", 1))
LOST = done(2, ("claimed", "b", 0), ("lease_expired", "b", 6), ("completed", "a", 12.5))


def test_a_whole_book_is_in_order() -> None:
    report.check(BOOK, [ONE, LOST])
    assert report.by_node([ONE, LOST]) == {"a": 2}


@pytest.mark.parametrize(
    ("jobs", "why"),
    [
        ([ONE], "if/2 among them"),
        ([ONE, done(2, status="failed", error="no")], "failed: no"),
        ([ONE, LOST, done(2, ("completed", "a", 1))], "3 jobs for 2 sections"),
        ([ONE, done(2, ("completed", "a", 1), ("completed", "b", 2))], "1 done twice"),
    ],
)
def test_what_is_missing_or_done_twice_is_a_failure(jobs: list[Done], why: str) -> None:
    with pytest.raises(Failed, match=why):
        report.check(BOOK, jobs)


def test_recovery_counts_from_the_kill_and_only_what_the_killed_node_held() -> None:
    kill = Kill("b", AT + timedelta(seconds=1))
    recovered = report.recovery([ONE, LOST], kill)
    assert (recovered.back_s, recovered.done_s) == ((5.0,), (11.5,))
    with pytest.raises(Failed, match="held no job"):
        report.recovery([ONE], kill)


def test_topics_are_ordered_by_the_ease_of_their_sections_together() -> None:
    def section(topic: str, words: int, syllables: int, term: str) -> dict[str, Any]:
        terms = [{"term": term, "weight": 2.0}, {"term": "both", "weight": 1.5}]
        return {"topic": topic, "words": words, "sentences": 10, "syllables": syllables,
                "terms": terms}  # fmt: skip

    easy, hard = section("easy", 400, 400, "x"), section("hard", 200, 600, "y")
    short = section("short", report.LONG_ENOUGH - 1, 300, "z")
    told = report.topics([easy, short, hard, section("hard", 100, 300, "y2")])
    assert [topic.name for topic in told] == ["hard", "easy"]
    assert told[0].words == 300
    assert told[0].terms == ("both", "y", "y2")
