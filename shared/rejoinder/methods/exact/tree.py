"""The whole game in sequence form: what exact solvers and best responses work on.

Walking the tree once is enough. A player's *sequence* is their own moves on a path; under perfect
recall an infoset has one parent sequence, so a strategy is a product along it, and a terminal node
is nothing but one sequence a player, a chance probability and a utility. A pass of CFR is then one
sparse product over the terminals and one sweep over the infosets, several times less work than
walking nodes (von Stengel, 1996; that CFR needs no more is plain from its definition).

Two abstractions meet here. `play` says which actions the players of this tree have and what they
remember: with none, the real game and everything they saw; with an abstraction, its actions and the
history of its infoset keys. `policy` says by which keys and actions a strategy is looked up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rejoinder.games.base import Abstraction, Game, Rules
from rejoinder.games.contract import (
    CHANCE,
    CONCRETE,
    DECIDE,
    OVER,
    apply,
    begin_option,
    chance_outcomes,
    current_player,
    infoset_key,
    legal_actions,
    observed,
    pending_move,
    resolve,
    start,
    utility,
)
from rejoinder.kernel.jit import copy_record, kernel, rule
from rejoinder.kernel.masks import (
    count,
    first,
    load,
    mask_field,
    rest,
    some,
    store,
)
from rejoinder.kernel.rng import mix
from rejoinder.methods.tabular.table import find_or_add, new_table

_MAX_CHANCE_EVENTS = 256
_NO_BRANCH = -1  # everything below a node has been walked
_FORGETFUL = -1  # returned by the walk: an infoset was reached by two sequences of its owner
_TOO_DEEP = -2
_SEES_MORE = -3  # the policy would tell histories apart that a player of the tree cannot

INFOSET = np.dtype(
    [
        ("key", "<u8"),  # what its owner remembers, hashed
        ("policy_key", "<u8"),  # where a strategy is looked up
        ("player", "<i4"),
        ("parent", "<i4"),  # the owner's sequence that leads here
        ("first", "<i4"),  # its actions extend it to sequences first, first + 1, …
        ("actions", "<i4"),  # how many
        ("slot", "<i4"),  # of its first action in arrays of strategy parameters
        ("owns_slots", "?"),  # whether it is the first infoset with this slot
    ],
    align=True,
)


class Form(NamedTuple):
    """The arrays, as compiled code takes them. Sequences 0..players-1 are the empty ones."""

    infosets: Any  # INFOSET[I], parents before children
    terminals: Any  # int32[T, players]: a sequence for each player
    utilities: Any  # float64[T, players], times the probability of chance


@dataclass(frozen=True)
class Tree:
    """A game in sequence form."""

    game: Game
    rules: Rules
    play: Abstraction
    policy: Abstraction
    form: Form
    moves: Any  # int32[S]: the action, in terms of `play`, that a sequence ends with
    stands_for: Any  # bool[S, actions of `policy`]: which of them mean that move
    positions: Any  # game.dtype[I]: a state of each infoset
    slots: int  # strategy parameters: infosets with one policy key share them
    nodes: int  # of the tree that was walked

    @property
    def sequences(self) -> int:
        return len(self.moves)


def build_tree(
    game: Game,
    rules: Rules,
    play: Abstraction | None = None,
    policy: Abstraction | None = None,
) -> Tree:
    """Enumerate the game (only sensible for those listed as enumerable)."""
    play = play or game.concrete
    policy = policy or play
    _check_abstractions(game, play, policy)
    depth = game.max_decisions(rules) + _MAX_CHANCE_EVENTS
    walk_arrays = (
        game.template(rules),
        np.zeros(depth, game.dtype),
        np.zeros(depth, _frame_dtype(game, play)),
        game.players,
        game.starts,
        (play.argument(), play.number == CONCRETE),
        (policy.argument(), policy.number == play.number),
    )
    empty_form = Form(
        np.zeros(1, INFOSET),
        np.zeros((0, game.players), np.int32),
        np.zeros((0, game.players)),
    )
    nowhere = (np.zeros(0, np.int32), np.zeros((0, 0), np.bool_), np.zeros(0, game.dtype))
    counts = np.zeros(4, np.int64)
    _walk(*walk_arrays, new_table(INFOSET, 1), empty_form, *nowhere, counts, True)
    nodes, terminals, decisions, edges = (int(n) for n in counts)

    infosets = new_table(INFOSET, decisions)
    form = Form(
        infosets.rows,
        np.zeros((terminals, game.players), np.int32),
        np.zeros((terminals, game.players)),
    )
    moves = np.zeros(game.players + edges, np.int32)
    stands_for = np.zeros((game.players + edges, len(policy.actions)), np.bool_)
    positions = np.zeros(decisions, game.dtype)  # untouched pages take no memory
    status = _walk(*walk_arrays, infosets, form, moves, stands_for, positions, counts, False)
    if status == _FORGETFUL:
        raise ValueError(f"{game.name}: what a player observes does not amount to perfect recall")
    if status == _TOO_DEEP:
        raise ValueError(f"{game.name}: a game is longer than its max_decisions says")
    if status == _SEES_MORE:
        raise ValueError(
            f"{game.name}: a player who sees {play.name} cannot follow a policy for {policy.name}"
        )
    used = infosets.rows[: infosets.size[0]].copy()
    sequences = game.players + int(used["actions"].sum())
    slots = _assign_slots(used)
    return Tree(
        game=game,
        rules=rules,
        play=play,
        policy=policy,
        form=_merge_terminals(Form(used, form.terminals, form.utilities)),
        moves=moves[:sequences].copy(),
        stands_for=stands_for[:sequences].copy(),
        positions=positions[: len(used)].copy(),
        slots=slots,
        nodes=nodes,
    )


def _check_abstractions(game: Game, play: Abstraction, policy: Abstraction) -> None:
    for abstraction in (play, policy):
        if not game.fits_masks(abstraction):
            raise ValueError(f"{game.name}: {abstraction.name} has too many actions for a tree")
    if policy.options and policy is not play:
        raise ValueError(
            f"{game.name}: {policy.name} has options, so its policies can be followed only in its "
            f"own tree, not in that of {play.name}"
        )


def why_not_enumerable(game: Game, rules: Rules) -> str | None:
    """Why there can be no tree of the game with these rules, if there cannot."""
    if game.is_enumerable(rules):
        return None
    if not game.enumerable:
        return f"no configuration of {game.name} is known to be small enough to enumerate"
    known = ", ".join(sorted(game.enumerable))
    names = [name for name, known_rules in game.configurations.items() if known_rules == rules]
    if not names:
        return (
            f"it is not known whether {game.name} with these rules is too large to enumerate: they "
            f"are not those of a configuration that is known to be small enough, such as {known}"
        )
    return (
        f"{game.name}-{names[0]} is too large to enumerate; of its configurations these are not: "
        f"{known}"
    )


def _frame_dtype(game: Game, play: Abstraction) -> np.dtype[Any]:
    """One node on the current path."""
    players = game.players
    return np.dtype(
        [
            ("mover", "<i8"),
            mask_field("untried", len(play.actions)),  # decisions: actions still to be walked
            ("next", "<i8"),  # the sequence of the next untried action, or the next outcome
            ("identity", "<u8"),  # decisions: the mover's infoset
            ("reach", "<f8"),  # probability of chance up to here
            ("sequence", "<i4", (players,)),
            ("memory", "<u8", (players,)),  # hash of what each player remembers
            ("outcomes", "<i8"),  # of chance
            ("chance", "<f8", (len(game.outcomes),)),
        ],
        align=True,
    )


@kernel
def _walk(
    template: Any,
    states: Any,
    frames: Any,
    players: Any,
    starts: Any,
    play: Any,  # (abstraction, whether it is CONCRETE)
    policy: Any,  # (abstraction, whether it is the same)
    infosets: Any,
    form: Any,
    moves: Any,
    stands_for: Any,
    positions: Any,
    counts: Any,  # nodes, terminals, decision nodes, decision edges
    counting: Any,  # only count
) -> Any:
    counts[:] = 0
    sequences = players
    for beginner in range(starts):
        copy_record(states[0], template[0])
        start(states[0], beginner)
        frames[0].reach = 1.0 / starts
        for p in range(players):
            frames[0].sequence[p] = p
            frames[0].memory[p] = mix(np.uint64(beginner + 1))  # who starts is public
        depth = 0
        arrived = True
        while depth >= 0:
            state, frame = states[depth], frames[depth]
            if arrived:
                mover = _reach_node(state, play[0])
                frame.mover = mover
                frame.next = 0
                frame.outcomes = 0
                counts[0] += 1
                if mover == OVER:
                    if not counting:
                        for p in range(players):
                            form.terminals[counts[1], p] = frame.sequence[p]
                            form.utilities[counts[1], p] = frame.reach * utility(state, p)
                    counts[1] += 1
                elif mover == CHANCE:
                    frame.outcomes = chance_outcomes(state, frame.chance)
                else:
                    legal = legal_actions(state, play[0])
                    store(frame, "untried", legal)
                    counts[2] += 1
                    counts[3] += count(legal)
                    key = infoset_key(state, play[0])
                    frame.identity = mix(frame.memory[mover] ^ key)
                    if not counting:
                        size = infosets.size[0]
                        infoset = infosets.rows[find_or_add(infosets, frame.identity)]
                        if infosets.size[0] > size:
                            copy_record(positions[size], state)
                            infoset.player = mover
                            infoset.parent = frame.sequence[mover]
                            infoset.first = sequences
                            infoset.actions = count(legal)
                            infoset.policy_key = infoset_key(state, policy[0])
                            _name_sequences(
                                state, legal, play, policy, moves, stands_for, sequences
                            )
                            sequences += infoset.actions
                        elif infoset.parent != frame.sequence[mover]:
                            return _FORGETFUL
                        elif infoset.policy_key != infoset_key(state, policy[0]):
                            return _SEES_MORE
                        frame.next = infoset.first
            action = _next_branch(frame)
            if action == _NO_BRANCH:
                depth -= 1
                arrived = False
                continue
            if depth + 1 == len(frames):
                return _TOO_DEEP
            _descend(states, frames, depth, action, players, play)
            depth += 1
            arrived = True
    return sequences


@rule
def _reach_node(state: Any, play: Any) -> Any:
    """Who is to move, after what is pending has been played: that makes no nodes."""
    move = pending_move(state, play)
    while move != DECIDE:
        apply(state, move)
        move = pending_move(state, play)
    return current_player(state)


@rule
def _next_branch(frame: Any) -> Any:
    """The next action or outcome to be walked, or _NO_BRANCH."""
    if frame.mover >= 0:
        untried = load(frame, "untried")
        if not some(untried):
            return np.int64(_NO_BRANCH)
        store(frame, "untried", rest(untried))
        return np.int64(first(untried))
    while frame.next < frame.outcomes:
        outcome = frame.next
        frame.next += 1
        if frame.chance[outcome] > 0.0:
            return np.int64(outcome)
    return np.int64(_NO_BRANCH)


@rule
def _descend(states: Any, frames: Any, depth: Any, action: Any, players: Any, play: Any) -> None:
    """Set up the frame and state below frames[depth] after `action` (or a chance outcome)."""
    state, frame, below = states[depth], frames[depth], frames[depth + 1]
    mover = frame.mover
    move = np.int64(action)
    below.reach = frame.reach
    for p in range(players):
        below.sequence[p] = frame.sequence[p]
        below.memory[p] = frame.memory[p]
    if mover == CHANCE:
        below.reach *= frame.chance[action]
    else:
        move = np.int64(resolve(state, play[0], action))
        below.sequence[mover] = frame.next
        frame.next += 1
        below.memory[mover] = mix(frame.identity ^ np.uint64(action + 1))
    if play[1]:
        for p in range(players):
            if p != mover:
                seen = np.uint64(observed(state, move, p) + 2) | (
                    np.uint64(mover + 2) << np.uint64(32)
                )
                below.memory[p] = mix(frame.memory[p] ^ seen)
    copy_record(states[depth + 1], state)
    if mover != CHANCE:
        begin_option(states[depth + 1], play[0], action)
    apply(states[depth + 1], move)


@rule
def _name_sequences(
    state: Any, legal: Any, play: Any, policy: Any, moves: Any, stands_for: Any, sequences: Any
) -> None:
    """Note what the new sequences of an infoset end with, in terms of `play` and of `policy`."""
    s = sequences
    left = legal
    while some(left):
        action = first(left)
        left = rest(left)
        moves[s] = action
        if policy[1]:
            stands_for[s, action] = True
        else:
            move = resolve(state, play[0], action)
            means = legal_actions(state, policy[0])
            while some(means):
                a = first(means)
                means = rest(means)
                stands_for[s, a] = resolve(state, policy[0], a) == move
        s += 1


def _assign_slots(infosets: Any) -> int:
    """Give infosets with the same policy key and actions the same slots; returns how many.

    A strategy that is to be played knows no more than the policy key, in the real game too.
    """
    together = np.stack([infosets["policy_key"], infosets["actions"].astype(np.uint64)], axis=1)
    _, example, group = np.unique(together, axis=0, return_index=True, return_inverse=True)
    sizes = infosets["actions"][example]
    infosets["owns_slots"][example] = True
    infosets["slot"] = (np.cumsum(sizes) - sizes)[group.reshape(-1)]
    return int(sizes.sum())


def _merge_terminals(form: Form) -> Form:
    """Add up terminals with the same sequences: no strategy can tell them apart."""
    merged, group = np.unique(form.terminals, axis=0, return_inverse=True)
    utilities = np.zeros((len(merged), form.utilities.shape[1]))
    np.add.at(utilities, group.reshape(-1), form.utilities)
    return Form(form.infosets, np.ascontiguousarray(merged), utilities)
