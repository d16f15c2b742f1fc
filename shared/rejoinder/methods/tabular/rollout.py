"""The paper's rollout MCCFR (section 6): play game g, and learn from it.

`play_game` is the worker's half. Both players learn. At every decision each available action is
tried in N full-game rollouts, in which the acting player follows their latest policy and the others
their average ones; regrets are the mean utilities less their mean under the latest policy, without
reach weighting. The move then played is ε-greedy on the latest policy. The result, the *delta*, is
one `entry` a decision, in order: a pure function of the run config, the policy and g.

With *common random numbers* the k-th rollouts of a decision's actions see the same cards and draw
the same numbers for the players' choices. Values stay what they were, but much of the noise cancels
in their differences, which are all that regrets are.

`fold` is the learner's half. It adds a delta to the table: decayed regret sums, regret matching
with the game's clamps, the average policy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rejoinder.games.contract import (
    DECIDE,
    OVER,
    apply,
    begin_option,
    current_player,
    infoset_key,
    legal_actions,
    pending_move,
    play_action,
    random_action,
    resolve,
    resolve_chance,
    start,
    utility,
)
from rejoinder.kernel.jit import copy_record, hot, kernel, rule
from rejoinder.kernel.masks import (
    count,
    first,
    has,
    load,
    mask_field,
    rest,
    several,
    some,
    store,
    within,
)
from rejoinder.kernel.rng import CHOICES, DEALS, TRAINING, next_u64, open_stream, uniform
from rejoinder.methods.policies import AVERAGE, LATEST, policy_dtype
from rejoinder.methods.tabular.policy import PolicyLookup, read_lookup, sample_lookup
from rejoinder.methods.tabular.regret import match_clamped
from rejoinder.methods.tabular.table import find_or_add

EVERYONE = -1  # the learning seat, when all learn
NOT_A_PLAYER = -1  # the actor, when it was chance

MAX_REGRET = 1e9  # of one decision; far beyond any game's stakes, and sums of it stay finite

# How past policies make the average one.
BUFFER, UNIFORM, LINEAR = 0, 1, 2
AVERAGING = {"buffer": BUFFER, "uniform": UNIFORM, "linear": LINEAR}


def row_dtype(num_actions: int, kept_policies: int) -> np.dtype[Any]:
    """An infoset as the learner knows it; only BUFFER needs more than one kept policy."""
    return np.dtype(
        [
            ("key", "<u8"),
            mask_field("legal", num_actions),  # mask of its actions
            ("updates", "<i8"),
            ("reach", "<f8"),  # sum of counterfactual reach over its visits
            ("regret", "<f8", (num_actions,)),  # decayed sums
            ("count", "<f8", (num_actions,)),  # decayed number of updates, for the mean regret
            ("policy", "<f8", (2, num_actions)),  # LATEST and AVERAGE
            ("weights", "<f8", (num_actions,)),  # sum of weighted policies (UNIFORM, LINEAR)
            ("buffer", "<f8", (kept_policies, num_actions)),  # ring of recent policies (BUFFER)
        ],
        align=True,
    )


def entry_dtype(num_actions: int) -> np.dtype[Any]:
    """One decision of a delta."""
    return np.dtype(
        [
            ("key", "<u8"),
            mask_field("legal", num_actions),
            ("reach", "<f8"),  # probability of the other learners' moves and of chance up to here
            ("regret", "<f8", (num_actions,)),  # of the legal actions; 0 elsewhere
        ],
        align=True,
    )


def policy_rows(rows: Any) -> Any:
    """What players need of the learner's rows, as they are now."""
    made = np.empty(len(rows), policy_dtype(rows.dtype["regret"].shape[0]))
    made["key"] = rows["key"]
    made["policy"] = rows["policy"]
    return made


@kernel
def play_game(
    template: Any,
    policy: Any,
    states: Any,  # two scratch states: the game and a rollout
    streams: Any,  # three scratch streams: the game; a rollout's chance and choices
    seed: Any,
    index: Any,
    players: Any,
    starts: Any,  # seats that begin in turn
    abstraction: Any,
    rollouts: Any,
    epsilon: Any,
    common_random_numbers: Any,
    entries: Any,  # out: the delta
) -> Any:
    """Play training game `index`; returns the number of entries (decisions) written."""
    open_stream(streams[0], np.uint64(seed), np.uint64(index), np.uint64(TRAINING))
    copy_record(states[0], template[0])
    start(states[0], index % starts)
    lookup = PolicyLookup(policy, abstraction, policy, abstraction)
    reach, strategy = np.ones(players), np.empty(len(entries[0].regret))
    how = (rollouts, epsilon, common_random_numbers)
    return _learn(states, lookup, lookup, EVERYONE, streams, how, reach, strategy, entries)


@kernel
def play_against(
    template: Any,
    lookup: Any,
    opponent: Any,  # plays its average policy and does not learn
    states: Any,
    streams: Any,
    seed: Any,
    index: Any,
    players: Any,
    starts: Any,
    rollouts: Any,
    epsilon: Any,
    common_random_numbers: Any,
    entries: Any,
) -> Any:
    """The same for one learner against fixed opponents; they take each seat for each start."""
    open_stream(streams[0], np.uint64(seed), np.uint64(index), np.uint64(TRAINING))
    copy_record(states[0], template[0])
    start(states[0], index % starts)
    seat = (index // starts) % players
    reach, strategy = np.ones(players), np.empty(len(entries[0].regret))
    how = (rollouts, epsilon, common_random_numbers)
    return _learn(states, lookup, opponent, seat, streams, how, reach, strategy, entries)


@rule
def _learn(
    states: Any,  # states[0] is a game that has been set up
    lookup: Any,  # of the learner
    opponent: Any,  # lookup of the others in rollouts, and of those who do not learn
    seat: Any,  # of the learner, or EVERYONE
    streams: Any,
    how: Any,  # (rollouts, epsilon, common random numbers)
    reach: Any,  # scratch by player: probability of the others' moves and of chance so far
    strategy: Any,  # scratch by action
    entries: Any,
) -> Any:
    state, trial = states[0], states[1]
    rollouts, epsilon, common_random_numbers = how
    rng = streams[0]
    chance, choices = (streams[1], streams[2]) if common_random_numbers else (rng, rng)
    _scale(reach, resolve_chance(state, rng), NOT_A_PLAYER)
    n = 0
    while current_player(state) != OVER:
        player = current_player(state)
        if seat != EVERYONE and player != seat:
            _act(state, opponent, AVERAGE, rng)
            _scale(reach, resolve_chance(state, rng), NOT_A_PLAYER)
            continue
        pending = pending_move(state, lookup.abstraction)
        if pending != DECIDE:
            apply(state, pending)
            _scale(reach, resolve_chance(state, rng), NOT_A_PLAYER)
            continue
        legal = legal_actions(state, lookup.abstraction)
        entry = entries[n]
        n += 1
        entry.key = infoset_key(state, lookup.abstraction)
        store(entry, "legal", legal)
        entry.reach = reach[player]
        for a in range(len(entry.regret)):
            entry.regret[a] = 0.0
        read_lookup(state, lookup, LATEST, legal, strategy)
        if several(legal):  # a forced move has no regret
            expected = 0.0
            shared = next_u64(rng) if common_random_numbers else np.uint64(0)
            left = legal
            while some(left):
                a = first(left)
                left = rest(left)
                value = 0.0
                move = resolve(state, lookup.abstraction, a)
                for k in range(rollouts):
                    if common_random_numbers:
                        open_stream(chance, shared, np.uint64(k), np.uint64(DEALS))
                        open_stream(choices, shared, np.uint64(k), np.uint64(CHOICES))
                    copy_record(trial, state)
                    begin_option(trial, lookup.abstraction, a)
                    apply(trial, move)
                    resolve_chance(trial, chance)
                    _play_out(trial, lookup, opponent, player, chance, choices)
                    value += utility(trial, player)
                value /= rollouts
                entry.regret[a] = value
                expected += strategy[a] * value
            left = legal
            while some(left):
                a = first(left)
                left = rest(left)
                entry.regret[a] -= expected
        if epsilon > 0.0 and uniform(rng) < epsilon:
            chosen = random_action(legal, rng)
        else:
            chosen = sample_lookup(state, lookup, LATEST, legal, rng)
        probability = epsilon / count(legal) + (1.0 - epsilon) * strategy[chosen]
        _scale(reach, probability, player)
        play_action(state, lookup.abstraction, chosen)
        _scale(reach, resolve_chance(state, rng), NOT_A_PLAYER)
    return n


@rule
def _scale(reach: Any, probability: Any, actor: Any) -> None:
    """Multiply the reach of everyone but the actor, whose own moves do not count for them."""
    for player in range(len(reach)):
        if player != actor:
            reach[player] *= probability


@rule
def _play_out(
    state: Any, lookup: Any, opponent: Any, player: Any, chance: Any, choices: Any
) -> None:
    """Play to the end: `player` by their latest policy, others by the opponent's average one."""
    mover = current_player(state)
    while mover != OVER:
        if mover == player:
            _act(state, lookup, LATEST, choices)
        else:
            _act(state, opponent, AVERAGE, choices)
        resolve_chance(state, chance)
        mover = current_player(state)


@hot
def _act(state: Any, lookup: Any, column: Any, rng: Any) -> None:
    move = pending_move(state, lookup.abstraction)
    if move == DECIDE:
        legal = legal_actions(state, lookup.abstraction)
        if several(legal):
            action = sample_lookup(state, lookup, column, legal, rng)
        else:
            action = first(legal)
        move = resolve(state, lookup.abstraction, action)
        begin_option(state, lookup.abstraction, action)
    apply(state, move)


@kernel
def fold(
    table: Any,
    entries: Any,
    decay: Any,
    averaging: Any,
    never: Any,
    passive: Any,
    touched: Any,  # out: the row of each entry
) -> None:
    """Add deltas to the learner's table, entry by entry (see `table.with_room`)."""
    for e in range(len(entries)):
        entry = entries[e]
        touched[e] = find_or_add(table, entry.key)
        row = table.rows[touched[e]]
        if row.updates == 0:
            store(row, "legal", load(entry, "legal"))
            _set_uniform(row.policy, load(row, "legal"))
        legal = load(row, "legal")  # those of an entry that lies about them are not
        row.updates += 1
        row.reach += entry.reach
        left = legal
        while some(left):
            a = first(left)
            left = rest(left)
            row.regret[a] = decay * row.regret[a] + entry.regret[a]
            row.count[a] = decay * row.count[a] + 1.0
        match_clamped(row.regret, legal, never, passive, row.policy[LATEST])
        _average(row, averaging)


@rule
def _set_uniform(policy: Any, legal: Any) -> None:
    share = 1.0 / count(legal)
    for a in range(policy.shape[1]):
        p = share if has(legal, a) else 0.0
        policy[LATEST, a] = p
        policy[AVERAGE, a] = p


@rule
def _average(row: Any, averaging: Any) -> None:
    """Bring the average policy up to date with the latest one."""
    latest = row.policy[LATEST]
    average = row.policy[AVERAGE]
    actions = len(latest)
    if averaging == BUFFER:
        size = len(row.buffer)
        place = (row.updates - 1) % size
        filled = min(row.updates, size)
        for a in range(actions):
            row.buffer[place, a] = latest[a]
        for a in range(actions):
            total = 0.0
            for k in range(filled):
                total += row.buffer[k, a]
            average[a] = total / filled
    else:
        weight = 1.0 if averaging == UNIFORM else np.float64(row.updates)
        total = 0.0
        for a in range(actions):
            row.weights[a] += weight * latest[a]
            total += row.weights[a]
        for a in range(actions):
            average[a] = row.weights[a] / total


@kernel
def first_flaw(entries: Any, actions: Any) -> Any:
    """The first entry that no game can have given, or -1: for deltas that come from outside."""
    for e in range(len(entries)):
        entry = entries[e]
        legal = load(entry, "legal")
        if not some(legal) or not within(legal, actions):
            return e
        if not (entry.reach >= 0.0 and entry.reach <= 1.0 + 1e-9):  # NaN fails too
            return e
        for a in range(actions):
            regret = entry.regret[a]
            if not abs(regret) <= MAX_REGRET:
                return e
            if regret != 0.0 and not has(legal, a):
                return e
    return -1
