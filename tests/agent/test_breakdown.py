"""When a loop of the agent itself breaks: work is ended and given back, and the status says so.

In one process with the stub: a fault of our own has to be put in by hand.
"""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from umbra_agent import runtime
from umbra_agent.agent import Agent
from umbra_agent.config import Config, Handler
from umbra_agent.controller import Controller
from umbra_agent.devices.detection import Detector
from umbra_agent.loops import claiming, heartbeat

from tests.agent.conftest import alive, until
from tests.agent.stub import KEY, Stub

Breaks = Callable[[pytest.MonkeyPatch], None]


def _break_heart(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("put in by hand")

    monkeypatch.setattr(heartbeat, "_obey", broken)


def _break_claiming(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("put in by hand")

    monkeypatch.setattr(claiming, "of_claim", broken)


@pytest.mark.parametrize(
    ("breaks", "told"), [(_break_heart, "release"), (_break_claiming, "complete")]
)
async def test_work_is_ended_and_given_back_when_a_loop_breaks(
    controller: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks: Breaks, told: str
) -> None:
    """With a result that is there already: while the heart beats, there is time to say it."""
    mark = f"UMBRA_TEST_MARK={tmp_path}"
    environment = {"PATH": os.environ["PATH"], "UMBRA_TEST_MARK": str(tmp_path)}
    ready = tmp_path / "ready"
    script = f'echo 5 > "$UMBRA_RESULT_FILE"; touch {ready}; exec sleep 300'
    handler = Handler(kinds=("work",), argv=("sh", "-c", script))
    async with Controller(controller.url, KEY) as calls:
        agent = Agent(
            config=Config(url=controller.url, handlers=(handler,), max_jobs=2),
            controller=calls,
            detector=Detector(10.0, tmp_path, environment),
            environment=environment,
            work_dir=tmp_path,
        )
        async with asyncio.timeout(15), asyncio.TaskGroup() as group:
            living = group.create_task(_ends(agent))
            lease_id = controller.job()
            await until(ready.exists)
            breaks(monkeypatch)
            controller.job()
            assert "put in by hand" in await living
    assert [name for name, _ in controller.endings(lease_id)] == [told]
    assert alive(mark) == []


async def _ends(agent: Agent) -> str:
    with pytest.raises(ExceptionGroup) as broken:
        await runtime._live(agent)
    assert runtime._told(broken.value) == 1
    return repr(broken.value.exceptions)
