"""Programs that leave, print or hold what they should not: their own job pays, no other."""

import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import web

from tests.agent.conftest import Launcher, alive, until
from tests.agent.stub import Call, Stub, problem

LEASE = "lease_seconds = 5\nmax_jobs = 2"


def result_of(controller: Stub, lease_id: str) -> tuple[str, Call] | None:
    endings = controller.endings(lease_id)
    return endings[0] if endings else None


@pytest.mark.parametrize(
    "left",
    [
        """printf '{"message": "\\\\ud800"}\\n' > "$UMBRA_PROGRESS_FILE" """,
        """head -c 60000 /dev/zero | tr '\\0' '[' > "$UMBRA_PROGRESS_FILE" """,
        """mkfifo "$UMBRA_PROGRESS_FILE" """,
        """ln -s /dev/zero "$UMBRA_PROGRESS_FILE" """,
    ],
    ids=["half a character", "nested", "pipe", "device"],
)
async def test_no_progress_costs_a_renewal(controller: Stub, launcher: Launcher, left: str) -> None:
    async def strict(body: Call) -> web.Response | None:
        try:
            json.dumps(body, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return problem(422, "invalid_body")
        return None

    controller.answers["renew"] = strict
    agent = await launcher.start(f"{left}; sleep 300", agent=LEASE)
    lease_id = controller.job()
    await until(agent.work)
    await until(lambda: len(controller.of("renew")) >= 3)
    assert agent.work() != []
    assert controller.endings(lease_id) == []
    assert "renewal.failed" not in agent.events()


async def test_a_controller_that_refuses_progress_is_asked_without_it(
    controller: Stub, launcher: Launcher
) -> None:
    async def refuse(body: Call) -> web.Response | None:
        told = any("progress" in item for item in body["leases"])
        return problem(422, "invalid_body") if told else None

    controller.answers["renew"] = refuse
    agent = await launcher.start('echo 1 > "$UMBRA_PROGRESS_FILE"; sleep 300', agent=LEASE)
    controller.job()
    await until(lambda: len(controller.of("renew")) >= 4)
    assert "renewal.failed" not in agent.events()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ('ln -s /dev/zero "$UMBRA_RESULT_FILE"', "is no plain file"),
        ('mkfifo "$UMBRA_RESULT_FILE"', "is no plain file"),
        ('mkdir "$UMBRA_RESULT_FILE"', "is no plain file"),
        ('head -c 2000000 /dev/zero > "$UMBRA_RESULT_FILE"', "more than 1048576 bytes"),
        ('echo "{\\"a\\": 1, \\"a\\": 2}" > "$UMBRA_RESULT_FILE"', "'a' comes twice"),
        ('head -c 90000 /dev/zero | tr "\\0" "[" > "$UMBRA_RESULT_FILE"', "is no JSON"),
    ],
)
async def test_a_result_that_is_none_fails_and_says_why(
    controller: Stub, launcher: Launcher, script: str, said: str
) -> None:
    await launcher.start(script, handler="")
    lease_id = controller.job()
    name, body = await until(lambda: result_of(controller, lease_id))
    assert (name, body["retry"]) == ("fail", False)
    assert said in body["error"]


async def test_a_result_is_as_large_on_its_way_as_it_was(
    controller: Stub, launcher: Launcher
) -> None:
    """Escaped, these 750 kB would be 1.5 MB, and the controller takes one."""
    script = (
        """awk 'BEGIN { printf "\\""; for (n = 0; n < 250000; n++) printf "雪"; print "\\"" }'"""
    )
    await launcher.start(script)
    lease_id = controller.job()
    name, body = await until(lambda: result_of(controller, lease_id))
    assert (name, len(body["result"])) == ("complete", 250_000)


async def test_a_stray_that_hides_and_holds_the_pipes_delays_nothing_for_ever(
    controller: Stub, launcher: Launcher, tmp_path: Path
) -> None:
    """It has no mark, its own session, and all three pipes; the payload does not fit into one."""
    pid = tmp_path / "pid"
    hide = f"setsid env -i sh -c 'echo $$ > {pid}; exec sleep 30' <&3 &"
    await launcher.start(f"exec 3<&0; {hide} while [ ! -s {pid} ]; do sleep 0.05; done; exit 3")
    lease_id = controller.job(payload="x" * 500_000)
    name, _ = await until(lambda: result_of(controller, lease_id))
    assert name == "fail"
    stray = int(pid.read_text())
    assert stray not in alive("UMBRA_RUN=")
    with suppress(ProcessLookupError):
        os.kill(stray, signal.SIGKILL)


async def test_a_program_hears_one_term_not_two(
    controller: Stub, launcher: Launcher, tmp_path: Path
) -> None:
    heard = tmp_path / "heard"
    program = (
        f"import signal; file = open('{heard}', 'a', buffering=1); "
        "signal.signal(signal.SIGTERM, lambda *_: print('term', file=file)); print(1, file=file)\n"
        "while True: signal.pause()"
    )
    env = f"env = {{ PROGRAM = {json.dumps(program)} }}"
    agent = await launcher.start(f'exec {sys.executable} -c "$PROGRAM"', handler=env)
    lease_id = controller.job()
    await until(lambda: heard.exists() and heard.read_text())
    controller.cancel.add(lease_id)
    await until(lambda: controller.endings(lease_id))
    assert heard.read_text().split() == ["1", "term"]
    assert agent.work() == []


async def test_output_that_is_no_text_is_told_as_text_q12(
    controller: Stub, launcher: Launcher
) -> None:
    await launcher.start("head -c 200 /dev/zero >&2; printf '\\355\\240\\200' >&2; exit 1")
    lease_id = controller.job()
    name, body = await until(lambda: result_of(controller, lease_id))
    assert name == "fail"
    body["error"].encode()
    assert "\0" not in body["error"]
    assert body["error"].startswith("Exit code 1.\n\ufffd")


async def test_a_refused_result_is_told_as_a_failure_until_that_is_heard_q12(
    controller: Stub, launcher: Launcher
) -> None:
    tries: list[Call] = []

    async def refuse(body: Call) -> web.Response:
        return problem(422, "invalid_body", errors=[{"path": "$.result.a", "detail": "NUL"}])

    async def away_twice(body: Call) -> web.Response | None:
        tries.append(body)
        return problem(503, "database_unavailable") if len(tries) < 3 else None

    controller.answers |= {"complete": refuse, "fail": away_twice}
    await launcher.start()
    controller.job()
    await until(lambda: len(tries) == 3)
    assert (tries[2]["retry"], "$.result.a" in tries[2]["error"]) == (False, True)


async def test_the_key_cannot_be_read_from_the_agents_environment_by_a_job(
    controller: Stub, launcher: Launcher
) -> None:
    await launcher.start("tr '\\0' '\\n' < /proc/$PPID/environ | grep -c ^UMBRA_NODE_KEY=umn; true")
    lease_id = controller.job()
    name, body = await until(lambda: result_of(controller, lease_id))
    assert (name, body["result"]) == ("complete", 0)
