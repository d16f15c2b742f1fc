"""Kernels: once the gateway is ready nothing is left to compile, whatever a run goes by."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from gateway_play import API, BASE, Player, settings, when_ready
from numba.core.dispatcher import Dispatcher

from rejoinder.games import GAMES
from rejoinder.measure.warm import untrained_agents
from rejoinder.run.config import load_config
from rejoinder.run.rundir import RunDir
from rejoinder_gateway import analyses
from rejoinder_gateway.app import create_app
from rejoinder_learner.sequential import train


def test_there_is_an_agent_for_every_number_of_actions() -> None:
    """Of abstractions; only where a game has none its concrete moves are what a policy sees."""
    for game in GAMES.values():
        agents = untrained_agents(game)
        widths = [len(agent.abstraction.actions) for agent in agents]
        wanted = game.abstractions[1:] or game.abstractions
        assert sorted(widths) == sorted({len(a.actions) for a in wanted})
        assert [agent.lookup.policy.rows.dtype["policy"].shape[1] for agent in agents] == widths


def test_a_run_of_another_width_finds_everything_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`race` has an action more than the agents that need no training."""
    monkeypatch.setattr(analyses, "GAMES", 20)
    monkeypatch.setattr(analyses, "ATTACK_GAMES", 2)
    monkeypatch.setattr(analyses, "SAMPLES", 3)
    little = {
        "games": 10,
        "batch": 5,
        "method.rollouts": 1,
        "eval_every": 0,
        "checkpoint_every": 10,
    }
    train(RunDir.create(tmp_path / "race", load_config("strong", little)))
    app = create_app(settings(tmp_path, f"sqlite:///{tmp_path / 'gateway.db'}"))
    with TestClient(app, base_url=BASE) as client:
        assert when_ready(client)["checks"]["kernels"] == "ok"
        before = _compiled()
        for search in (0, 20):
            player = Player.start(client, {"run": "race"}, search=search, first="agent")
            advice = player.get("/advice").json()
            assert (advice["search"] > 0) == (search > 0)
            assert player.move(advice["actions"][0]["move"]).status_code == 200
        told = client.get(f"{API}/runs/race/responses").json()
        assert (told["snapshot"], told["games"]) == (10, 20)
        assert told["exploitability"]["samples"] == 3
        assert _compiled() == before


def _compiled() -> dict[str, list[str]]:
    """The signatures of every function of ours that there is code for."""
    return {
        f"{module}.{name}": [str(signature) for signature in value.signatures]
        for module, loaded in list(sys.modules.items())
        if module.split(".")[0] == "rejoinder"
        for name, value in vars(loaded).items()
        if isinstance(value, Dispatcher)
    }
