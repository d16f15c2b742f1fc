"""Any game as a PettingZoo AEC environment.

    from rejoinder.interop.pettingzoo import env

    table = env("deal-medium")
    table.reset(seed=7)
    for agent in table.agent_iter():
        seen, reward, over, _, _ = table.last()
        table.step(None if over else table.action_space(agent).sample(seen["action_mask"]))

Agents are the seats; actions are the game's moves, or the actions of an abstraction. An observation
is what the player sees as a vector (see `observations`), and the mask of his legal actions; nothing
is legal for one who is not to move. Rewards come with the end. Chance is part of `step`: all of it
follows from the seed, and each `reset` without one plays the next game of the last seed.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv
from pettingzoo.utils import wrappers

from rejoinder.games import find_game, queries
from rejoinder.games.base import Game, Rules
from rejoinder.games.session import IllegalMove, Session
from rejoinder.interop.observations import LIMIT, Observer


def env(
    game: Game | str,
    rules: Rules | None = None,
    *,
    abstraction: str = "none",
    render_mode: str | None = None,
) -> Any:
    """The environment with the usual checks: an illegal action loses, one out of range raises."""
    made: Any = GameEnv(game, rules, abstraction=abstraction, render_mode=render_mode)
    made = wrappers.TerminateIllegalWrapper(made, illegal_reward=-1)
    return wrappers.OrderEnforcingWrapper(wrappers.AssertOutOfBoundsWrapper(made))


class GameEnv(AECEnv):  # type: ignore[misc, unused-ignore]
    """The environment as such: an illegal action is an `IllegalMove`, and changes nothing."""

    metadata: dict[str, Any] = {  # noqa: RUF012 (the library's form)
        "name": "rejoinder_v0",
        "render_modes": ["ansi", "human"],
        "is_parallelizable": False,
    }

    def __init__(
        self,
        game: Game | str,
        rules: Rules | None = None,
        *,
        abstraction: str = "none",
        render_mode: str | None = None,
    ) -> None:
        super().__init__()
        if isinstance(game, str):
            game, configuration = find_game(game)
            rules = rules or game.configurations[configuration]
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode: no {render_mode!r}; there are ansi and human")
        self.game = game
        self.rules = rules or next(iter(game.configurations.values()))
        self.abstraction = game.abstraction(abstraction)
        self.render_mode = render_mode
        self.possible_agents = [f"player_{seat}" for seat in range(game.players)]
        self.agents: list[str] = []
        self._observer = Observer(game, self.rules)
        actions = len(self.abstraction.actions)
        observed: dict[str, spaces.Space[Any]] = {
            "observation": spaces.Box(-LIMIT, LIMIT, (self._observer.size,), np.float32),
            "action_mask": spaces.Box(0, 1, (actions,), np.int8),
        }
        self._observation_spaces = {a: spaces.Dict(observed) for a in self.possible_agents}
        self._action_spaces = {a: spaces.Discrete(actions) for a in self.possible_agents}
        self._seed, self._index = secrets.randbits(62), -1

    def observation_space(self, agent: str) -> Any:
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        return self._action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Deal a new game; `options` may name the `first_player`.

        Else the seats take turns, both from seed to seed and from game to game of one seed.
        """
        if seed is not None:
            self._seed, self._index = seed, -1
        self._index += 1
        turn = (self._seed + self._index) % self.game.starts
        first = (options or {}).get("first_player", turn)
        self.session = Session.start(
            self.game, self.rules, seed=self._seed, index=self._index, first_player=first
        )
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._select()

    def observe(self, agent: str) -> dict[str, Any]:
        seat = self.possible_agents.index(agent)
        mask = np.zeros(len(self.abstraction.actions), np.int8)
        if self.session.to_move == seat:
            legal = queries.legal_numbers(self.game, self.session.states, self.abstraction)
            mask[legal] = 1
        return {
            "observation": self._observer.vector(self.session.states, seat),
            "action_mask": mask,
        }

    def step(self, action: int | None) -> None:
        if self.terminations[self.agent_selection]:
            self._was_dead_step(action)
            return
        if action is None:
            raise IllegalMove(f"{self.agent_selection} is to move and gave no action")
        agent = self.agent_selection
        self.session.apply_abstract(int(action), self.abstraction.name)
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        if self.session.utilities is not None:
            self.rewards = dict(zip(self.agents, self.session.utilities, strict=True))
            self.terminations = dict.fromkeys(self.agents, True)
        self._select()
        self._accumulate_rewards()
        if self.render_mode == "human":
            self.render()

    def _select(self) -> None:
        """The next one to act; after the end all are, to be told so."""
        self.agent_selection = self.possible_agents[self.session.to_move or 0]

    def render(self) -> str | None:
        """What has happened, by everybody's knowledge, and who is to move."""
        who = {None: "chance"} | dict(enumerate(self.possible_agents))
        lines = [f"{who[event.actor]}: {event.name}" for event in self.session.history]
        if self.session.utilities is None:
            lines.append(f"{self.agent_selection} is to move")
        else:
            lines.append(f"over: {self.rewards}")
        if self.render_mode != "human":
            return "\n".join(lines)
        print("\n".join(lines))
        return None

    def close(self) -> None:
        """Nothing is held."""
