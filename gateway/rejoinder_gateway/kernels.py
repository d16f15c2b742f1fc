"""Having the compiled functions of every game at hand before the first player waits for them."""

from __future__ import annotations

import gc
import threading

from rejoinder.games import GAMES
from rejoinder.games.base import Game
from rejoinder.games.session import Session
from rejoinder.measure.agents import Agent, opponents
from rejoinder.measure.search import searching
from rejoinder.measure.warm import untrained_agents
from rejoinder_gateway import analyses
from rejoinder_gateway.decisions import SeatedAgent
from rejoinder_gateway.problems import note

# Rarely: a collection stops everybody, for 5 ms when it looks at young objects alone and for 100 ms
# when it goes through all games in memory, and finds little, since games hold no cycles.
_COLLECT = (50_000, 20, 50)


class Kernels:
    """`state` is "ok" once they are there; until then requests work, but may wait."""

    def __init__(self) -> None:
        self.state = "loading"
        self._stopped = False

    def load_aside(self) -> None:
        """In a thread that the process does not wait for when it ends."""
        threading.Thread(target=self.load, name="kernels", daemon=True).start()

    def stop_loading(self) -> None:
        self._stopped = True

    def load(self) -> None:
        """From the cache in a few seconds; compiled, on a new machine, in 90 s of one core."""
        try:
            for game in GAMES.values():
                for agent in (*opponents(game).values(), *untrained_agents(game)):
                    self._play(game, agent)
                for agent in untrained_agents(game):
                    self._play(game, searching(agent, game, 1))
            for game in GAMES.values():
                for agent in untrained_agents(game):
                    if not self._stopped:
                        analyses.warm_up(game, agent)
        except Exception as error:
            self.state = f"cannot be loaded; the log has more under {note(error)}"
            return
        if not self._stopped:
            gc.collect()
            gc.freeze()  # compiled code is a big heap that the collector need not search again
            gc.set_threshold(*_COLLECT)
            self.state = "ok"

    def _play(self, game: Game, agent: Agent) -> None:
        """One game of an agent against itself, with everything that a player may ask."""
        mind = SeatedAgent(agent, None)
        session = Session.start(game, seed=1)
        number = 0
        while not (session.over or self._stopped):
            session.legal()
            session.view(0)
            session.apply(mind.decide(session, 1, number)[0])
            number += 1
        assert self._stopped or session.utilities is not None
