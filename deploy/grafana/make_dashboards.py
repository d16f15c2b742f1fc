"""Makes the dashboards: `python deploy/grafana/make_dashboards.py` writes dashboards/*.json.

What they show is here, how Grafana wants it told is in `panels`. The metrics are those of
docs/metrics.md.
"""

from __future__ import annotations

import json
from pathlib import Path

from panels import (
    ALERTS,
    GREEN,
    NONE_IS_GOOD,
    RED,
    SOME_ARE_NEEDED,
    YELLOW,
    Json,
    dashboard,
    gauge,
    graph,
    heatmap,
    links,
    row,
    stat,
    table,
    variable,
)

FOLDER = Path(__file__).parent / "dashboards"

TITLES = {
    "rejoinder-training": "Rejoinder: Training",
    "rejoinder-workers": "Rejoinder: Throughput and workers",
    "rejoinder-learner": "Rejoinder: Learner",
    "rejoinder-gateway": "Rejoinder: Gateway",
}

RUN = 'run=~"$run"'
HERE = 'run=~"$run",instance=~"$instance"'
WAIT = "[$__rate_interval]"  # what a rate is taken over
RARE = "[15m]"  # for what happens every few minutes only
PROBES = "/metrics|/healthz|/readyz"  # routes that nobody asks for but machines

# A run that is over, or has no games for workers, is not to look as if it were in need.
NEEDED_WORKERS = (
    f"rejoinder_learner_workers{{{HERE}}} and rejoinder_learner_window_games{{{HERE}}} > 0"
)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, text in texts().items():
        (FOLDER / name).write_text(text, "utf-8")


def texts() -> dict[str, str]:
    """The files, by name."""
    made = {}
    for board in (training(), workers(), learner(), gateway()):
        uid = board["uid"]
        board["links"] = links([(other, TITLES[other]) for other in TITLES if other != uid])
        name = f"{uid.removeprefix('rejoinder-')}.json"
        made[name] = json.dumps(board, indent=2, ensure_ascii=False) + "\n"
    return made


def variables(metric: str, run: bool = True) -> list[Json]:
    """The run, and those instances that tell the metric."""
    among = f"{metric}{{{RUN}}}" if run else metric
    return [
        variable("run", "Run", "label_values(rejoinder_learner_games, run)", hidden=not run),
        variable("instance", "Instance", f"label_values({among}, instance)"),
    ]


def rate(metric: str, labels: str = HERE, window: str = WAIT) -> str:
    return f"rate({metric}{{{labels}}}{window})"


def quantiles(
    metric: str, labels: str, *shares: float, by: str = "", window: str = WAIT, name: str = ""
) -> list[tuple[str, str]]:
    """Of a histogram, for each value of the label `by`, if any; named after it, or `name`."""
    kept = f"le, {by}" if by else "le"
    label = f"{{{{{by}}}}} " if by else name and f"{name} "
    buckets = f"sum by ({kept}) ({rate(f'{metric}_bucket', labels, window)})"
    return [
        (f"histogram_quantile({share}, {buckets})", f"{label}p{share * 100:.0f}")
        for share in shares
    ]


def training() -> Json:
    games, target = (
        f"rejoinder_learner_games{{{HERE}}}",
        f"rejoinder_learner_target_games{{{HERE}}}",
    )
    folded = rate("rejoinder_learner_games_folded_total")
    left = f"clamp_min({target} - {games}, 0) / ({folded} > 0)"
    decisions = f"sum by (run) ({rate('rejoinder_worker_decisions_total', RUN)})"
    of_responder = rate("rejoinder_worker_decisions_total", f'{RUN},role="responder"')
    responder = f"sum by (run) ({of_responder})"
    phases = f"sum by (run) ({rate('rejoinder_worker_response_phases_total', RUN)})"
    utility, error = (
        f"rejoinder_learner_mean_utility{{{HERE}}}",
        f"rejoinder_learner_mean_utility_error{{{HERE}}}",
    )
    return dashboard(
        "rejoinder-training",
        TITLES["rejoinder-training"],
        "How far a run is, and how good.",
        variables("rejoinder_learner_games"),
        [
            row(
                "Progress",
                "**How to read it.** The run is over when *Done* is 100 %. *Time left* goes by the "
                "present speed and has no value while nothing is folded. A firing alert has a name "
                "and a remedy in `docs/operations.md`.",
                gauge("Done", "Games folded, of those the run is to have.", f"{games} / {target}"),
                stat("Games", "Games in the table.", games, decimals=0),
                stat("Time left", "At the present speed.", left, "s", decimals=0),
                stat("Games/s", "Games folded a second.", folded, "ops"),
                stat(
                    "Workers",
                    "That have shown a sign of life.",
                    NEEDED_WORKERS,
                    steps=SOME_ARE_NEEDED,
                ),
                stat(
                    "Alerts",
                    "Of Rejoinder, firing now, whatever run they are of.",
                    f"count({ALERTS}) or vector(0)",
                    steps=NONE_IS_GOOD,
                ),
                graph(
                    "Games folded, and the target",
                    "A straight line is a steady run. A step down: games were undone, because "
                    "their worker was caught with wrong deltas.",
                    (games, "{{run}}"),
                    (target, "{{run}} target"),
                ),
                graph(
                    "Time left", "Should fall by a second a second.", (left, "{{run}}"), unit="s"
                ),
            ),
            row(
                "Strength",
                "**How to read it.** Maximum expected regret falls, steeply at first and then "
                "slowly; mean utility rises and levels off. Both are taken every `eval_every` "
                "games, so they move in steps. A mean utility below zero is a loss to that "
                "opponent; win rates are there where the game counts wins.",
                graph(
                    "Maximum expected regret (MER)",
                    "By the last measurement. It should fall; it need not fall at every step.",
                    (f"rejoinder_learner_mer{{{HERE}}}", "{{run}}"),
                ),
                graph(
                    "Mean utility by opponent",
                    "What a game was worth in the last evaluation, in the game's unit, and its "
                    "95 % interval.",
                    (utility, "{{run}} against {{opponent}}"),
                    (f"{utility} - {error}", "{{run}} against {{opponent}}, low"),
                    (f"{utility} + {error}", "{{run}} against {{opponent}}, high"),
                    low=None,
                    line_at=((None, RED), (0.0, GREEN)),
                ),
                graph(
                    "Win rate by opponent",
                    "By the last evaluation, with its sampling error; of games that count wins.",
                    (f"rejoinder_learner_win_rate_ratio{{{HERE}}}", "{{run}} against {{opponent}}"),
                    unit="percentunit",
                    high=1,
                    line_at=((None, RED), (0.5, GREEN)),
                ),
                graph(
                    "Infosets",
                    "Rows of the table. It levels off when play meets little that is new.",
                    (f"rejoinder_learner_infosets{{{HERE}}}", "{{run}}"),
                ),
            ),
            row(
                "Response phases",
                "**How to read it.** How much of the play is one player answering alone. Both "
                "figures change with the policies, slowly; a jump is worth a look. "
                "Games without responses have a share of 0 and no length.",
                graph(
                    "Share of decisions made in responses",
                    "Decisions in a response phase, of all.",
                    (f"{responder} / ({decisions} > 0)", "{{run}}"),
                    unit="percentunit",
                    high=1,
                ),
                graph(
                    "Mean length of a response phase",
                    "Decisions in a response phase.",
                    (f"{responder} / ({phases} > 0)", "{{run}}"),
                ),
            ),
        ],
    )


def workers() -> Json:
    here = f'job="rejoinder-worker",{HERE}'
    process = 'job="rejoinder-worker",instance=~"$instance"'
    busy = f"sum by (instance) ({rate('rejoinder_worker_busy_seconds_total')})"
    return dashboard(
        "rejoinder-workers",
        TITLES["rejoinder-workers"],
        "How fast the games are played, by whom, and what it takes.",
        variables("rejoinder_worker_games_total"),
        [
            row(
                "Throughput",
                "**How to read it.** Games a second of all the workers chosen. Decisions and "
                "rollouts go up and down with it; if games get slower and rollouts do not, the "
                "games have become longer.",
                stat(
                    "Games/s",
                    "Training games played a second.",
                    f"sum({rate('rejoinder_worker_games_total')})",
                    "ops",
                    w=6,
                ),
                stat(
                    "Decisions/s",
                    "Of both roles.",
                    f"sum({rate('rejoinder_worker_decisions_total')})",
                    "ops",
                    w=6,
                ),
                stat(
                    "Rollouts/s",
                    "Legal actions times rollouts, by decision.",
                    f"sum({rate('rejoinder_worker_rollouts_total')})",
                    "ops",
                    w=6,
                ),
                stat(
                    "Workers at work",
                    "On the runs chosen.",
                    f"sum(rejoinder_worker_up{{{here}}})"
                    f" and sum(rejoinder_learner_up{{{RUN}}}) > 0",
                    steps=SOME_ARE_NEEDED,
                    w=6,
                ),
                graph(
                    "Games/s",
                    "By run.",
                    (f"sum by (run) ({rate('rejoinder_worker_games_total')})", "{{run}}"),
                    unit="ops",
                    w=8,
                ),
                graph(
                    "Decisions/s",
                    "By role; a responder's are those of a response phase.",
                    (f"sum by (role) ({rate('rejoinder_worker_decisions_total')})", "{{role}}"),
                    unit="ops",
                    w=8,
                    stacked=True,
                ),
                graph(
                    "Rollouts/s",
                    "By run.",
                    (f"sum by (run) ({rate('rejoinder_worker_rollouts_total')})", "{{run}}"),
                    unit="ops",
                    w=8,
                ),
            ),
            row(
                "Each worker",
                "**How to read it.** A worker that is busy less than four fifths of the time waits "
                "for leases: the batch is too small for so many workers, or the learner or the "
                "server is too slow (see *Learner*). One worker far below the others has a slow "
                "machine or a bad connection.",
                graph(
                    "Busy",
                    "Share of the time spent on leases.",
                    (busy, "{{instance}}"),
                    unit="percentunit",
                    high=1,
                    line_at=((None, RED), (0.5, YELLOW), (0.8, GREEN)),
                ),
                graph(
                    "Games/s by worker",
                    "",
                    (f"sum by (instance) ({rate('rejoinder_worker_games_total')})", "{{instance}}"),
                    unit="ops",
                ),
                table(
                    "Workers",
                    "Totals since each process began.",
                    "instance",
                    (
                        f"sum by (instance) (rejoinder_worker_games_total{{{HERE}}})",
                        "games",
                        "short",
                    ),
                    (
                        f"sum by (instance) (rejoinder_worker_leases_total{{{HERE}}})",
                        "leases",
                        "short",
                    ),
                    (busy, "busy", "percentunit"),
                    (
                        f"max by (instance) (rejoinder_worker_snapshot_games{{{HERE}}})",
                        "snapshot (games)",
                        "short",
                    ),
                    (
                        f"max by (instance) (process_resident_memory_bytes{{{process}}})",
                        "memory",
                        "bytes",
                    ),
                    (
                        f"time() - max by (instance) (process_start_time_seconds{{{process}}})",
                        "running for",
                        "s",
                    ),
                ),
            ),
            row(
                "Leases",
                "**How to read it.** A lease is worth about 0.2 s of play; longer ones are "
                "evaluations, or games that take long by themselves. Refused leases are normal "
                "for a moment after the server or the learner was away, and no longer.",
                graph(
                    "Leases by outcome",
                    "",
                    (
                        f"sum by (kind, outcome) ({rate('rejoinder_worker_leases_total')})",
                        "{{kind}} {{outcome}}",
                    ),
                    unit="ops",
                    w=8,
                ),
                graph(
                    "Duration of a lease of games",
                    "Snapshot and delivery included.",
                    *quantiles(
                        "rejoinder_worker_lease_seconds", f'{HERE},kind="games"', 0.5, 0.95, 0.99
                    ),
                    unit="s",
                    w=8,
                ),
                heatmap(
                    "Durations of leases",
                    "All kinds.",
                    "sum by (le) ("
                    f"increase(rejoinder_worker_lease_seconds_bucket{{{HERE}}}{WAIT}))",
                    w=8,
                ),
            ),
            row(
                "Traffic and machines",
                "**How to read it.** Snapshots come as patches, so what is received grows with the "
                "rows that change and with the workers. Memory that grows with the table is as it "
                "should be; a worker uses one core at most.",
                graph(
                    "Received",
                    "Messages read, by kind.",
                    (
                        f"sum by (kind) ({rate('rejoinder_worker_received_bytes_total')})",
                        "{{kind}}",
                    ),
                    unit="Bps",
                    w=6,
                    stacked=True,
                ),
                graph(
                    "Sent",
                    "Messages sent, by kind.",
                    (f"sum by (kind) ({rate('rejoinder_worker_sent_bytes_total')})", "{{kind}}"),
                    unit="Bps",
                    w=6,
                    stacked=True,
                ),
                *machine(process),
            ),
        ],
    )


def learner() -> Json:
    process = 'job="rejoinder-learner",instance=~"$instance"'
    published = f"rejoinder_learner_snapshot_timestamp_seconds{{{HERE}}}"
    age = f"time() - ({published} and rejoinder_learner_up{{{HERE}}} == 1)"
    tasks = ("fold", "publish", "checkpoint")
    shares = {task: rate(f"rejoinder_learner_{task}_seconds_sum") for task in tasks}
    return dashboard(
        "rejoinder-learner",
        TITLES["rejoinder-learner"],
        "What the learner does with its time, what waits for it, and what it has refused.",
        variables("rejoinder_learner_games"),
        [
            row(
                "Work",
                "**How to read it.** Folding, publishing and saving happen one after the other. "
                "When *Share of time* in all comes near 100 % the learner limits the run: a bigger "
                "`batch` makes fewer snapshots, a bigger `checkpoint_every` fewer checkpoints.",
                graph(
                    "Games folded a second",
                    "",
                    (rate("rejoinder_learner_games_folded_total"), "{{run}}"),
                    unit="ops",
                    w=8,
                ),
                graph(
                    "Share of time",
                    "Of one second, by what it goes to; the rest is waiting for deltas.",
                    (f"sum by (run) ({' + '.join(shares.values())})", "in all, {{run}}"),
                    *((f"sum by (run) ({shares[task]})", f"{task}, {{{{run}}}}") for task in tasks),
                    unit="percentunit",
                    w=8,
                    line_at=((None, GREEN), (0.9, RED)),
                ),
                graph(
                    "Duration of one",
                    "Medians and 95th percentiles of the last 15 minutes.",
                    *(
                        pair
                        for task in tasks
                        for pair in quantiles(
                            f"rejoinder_learner_{task}_seconds",
                            HERE,
                            0.5,
                            0.95,
                            window=RARE,
                            name=task,
                        )
                    ),
                    unit="s",
                    w=8,
                ),
            ),
            row(
                "What waits",
                "**How to read it.** Leased games and those that wait for an earlier one are "
                "together at most the window, (lag + 1) · batch or less; they should go up and "
                "down. Leases that wait: more workers would find work. Games that wait while few "
                "are leased: one is late.",
                stat(
                    "Leases in the queue",
                    "Nobody has taken them yet.",
                    f"rejoinder_learner_queue_depth{{{HERE}}}",
                    w=6,
                ),
                stat(
                    "Games leased",
                    "And not here yet.",
                    f"rejoinder_learner_leased_games{{{HERE}}}",
                    w=6,
                ),
                stat(
                    "Games that wait",
                    "Here, but an earlier one is missing.",
                    f"rejoinder_learner_unfolded_games{{{HERE}}}",
                    w=6,
                ),
                stat(
                    "Workers",
                    "That have shown a sign of life.",
                    NEEDED_WORKERS,
                    steps=SOME_ARE_NEEDED,
                    w=6,
                ),
                graph(
                    "Backlog",
                    "",
                    (f"rejoinder_learner_queue_depth{{{HERE}}}", "leases in the queue of {{run}}"),
                    (f"rejoinder_learner_leased_games{{{HERE}}}", "games leased by {{run}}"),
                    (f"rejoinder_learner_unfolded_games{{{HERE}}}", "games that wait in {{run}}"),
                    (f"rejoinder_learner_window_games{{{HERE}}}", "window of {{run}}"),
                ),
                graph(
                    "Games leased again",
                    "Their lease was late. Some are normal when a worker has died.",
                    (rate("rejoinder_learner_games_leased_again_total"), "{{run}}"),
                    unit="ops",
                ),
            ),
            row(
                "What came in",
                "**How to read it.** Nearly all deltas should be accepted. Duplicates are games "
                "that were leased twice, late ones were made with a snapshot of a learner before "
                "this one; both are dropped and do no harm. Anything in quarantine, and any worker "
                "expelled, deserves a look at `quarantine.jsonl` in the run directory.",
                stat(
                    "Quarantined",
                    "Messages, since the learner began.",
                    f"rejoinder_learner_quarantined_total{{{HERE}}}",
                    steps=NONE_IS_GOOD,
                    w=6,
                ),
                stat(
                    "Workers expelled",
                    "Caught with a wrong delta.",
                    f"rejoinder_learner_banned_workers{{{HERE}}}",
                    steps=NONE_IS_GOOD,
                    w=6,
                ),
                stat(
                    "Duplicates",
                    "Games, since the learner began.",
                    f'rejoinder_learner_deltas_total{{{HERE},outcome="duplicate"}}',
                    w=6,
                ),
                stat(
                    "Audited",
                    "Games played again by the learner, since it began.",
                    f"rejoinder_learner_audited_total{{{HERE}}}",
                    w=6,
                ),
                graph(
                    "Deltas by outcome",
                    "Games whose deltas came, a second.",
                    (f"sum by (outcome) ({rate('rejoinder_learner_deltas_total')})", "{{outcome}}"),
                    unit="ops",
                    w=24,
                ),
            ),
            row(
                "Snapshots and checkpoints",
                "**How to read it.** The newest snapshot should be seconds old while games are "
                "played. A learner that dies goes on from the newest checkpoint: *Not saved yet* "
                "is what it would play again. A failed checkpoint is a full or a broken disk.",
                stat(
                    "Age of the newest snapshot",
                    "",
                    age,
                    "s",
                    ((None, GREEN), (60, YELLOW), (300, RED)),
                    w=6,
                    decimals=0,
                ),
                stat(
                    "Snapshot version",
                    "The newest published.",
                    f"rejoinder_learner_snapshot_version{{{HERE}}}",
                    w=6,
                    decimals=0,
                ),
                stat(
                    "Not saved yet",
                    "Games folded since the newest checkpoint.",
                    f"rejoinder_learner_games{{{HERE}}}"
                    f" - rejoinder_learner_checkpoint_games{{{HERE}}}",
                    w=6,
                ),
                stat(
                    "Failed checkpoints",
                    "That the disk did not take, since the learner began.",
                    f"rejoinder_learner_checkpoint_failures_total{{{HERE}}}",
                    steps=NONE_IS_GOOD,
                    w=6,
                ),
                graph("Age of the newest snapshot", "", (age, "{{run}}"), unit="s", w=8),
                graph(
                    "Games in table and checkpoint",
                    "",
                    (f"rejoinder_learner_games{{{HERE}}}", "table of {{run}}"),
                    (f"rejoinder_learner_checkpoint_games{{{HERE}}}", "checkpoint of {{run}}"),
                    w=8,
                ),
                heatmap(
                    "Durations of checkpoints",
                    "",
                    "sum by (le) (increase("
                    f"rejoinder_learner_checkpoint_seconds_bucket{{{HERE}}}{RARE}))",
                    w=8,
                ),
            ),
            row(
                "Traffic and machine",
                "**How to read it.** Memory grows with the infosets, and steps up when the table "
                "is enlarged. The learner uses one core at most. It sends mostly snapshots.",
                graph(
                    "Received",
                    "Messages from workers.",
                    (rate("rejoinder_learner_received_bytes_total"), "{{run}}"),
                    unit="Bps",
                    w=6,
                ),
                graph(
                    "Sent",
                    "By kind.",
                    (f"sum by (kind) ({rate('rejoinder_learner_sent_bytes_total')})", "{{kind}}"),
                    unit="Bps",
                    w=6,
                    stacked=True,
                ),
                *machine(process),
            ),
        ],
    )


def gateway() -> Json:
    here = 'instance=~"$instance"'
    asked = f'{here},route!~"{PROBES}"'
    # A stream lasts as long as somebody looks at it; that is no waiting time.
    timed = f'{here},route!~"{PROBES}|.*/events"'
    requests, seconds = "rejoinder_gateway_requests_total", "rejoinder_gateway_request_seconds"
    failed = rate(requests, f'{asked},status=~"5.."')
    refused = rate(requests, f'{asked},status=~"4.."')
    every = f"sum({rate(requests, asked)})"
    return dashboard(
        "rejoinder-gateway",
        TITLES["rejoinder-gateway"],
        "Requests, how long they take and how they end, and the games that people play.",
        variables("rejoinder_gateway_requests_total", run=False),
        [
            row(
                "Requests",
                "**How to read it.** Without those of Prometheus and of health checks. A 4xx is a "
                "mistake of the caller (429: one that asks too often), a 5xx is one of ours: there "
                "should be none, except 503 while a database or a run is away.",
                stat("Requests/s", "", every, "ops", w=8),
                stat(
                    "Failed (5xx)",
                    "Share of the requests.",
                    f"(sum({failed}) or vector(0)) / ({every} > 0)",
                    "percentunit",
                    ((None, GREEN), (0.01, YELLOW), (0.05, RED)),
                    w=8,
                ),
                stat(
                    "Refused (4xx)",
                    "Share of the requests.",
                    f"(sum({refused}) or vector(0)) / ({every} > 0)",
                    "percentunit",
                    ((None, GREEN), (0.2, YELLOW)),
                    w=8,
                ),
                graph(
                    "Requests/s by route",
                    "",
                    (f"sum by (route) ({rate(requests, asked)})", "{{route}}"),
                    unit="ops",
                    stacked=True,
                ),
                graph(
                    "Requests/s by status",
                    "",
                    (f"sum by (status) ({rate(requests, asked)})", "{{status}}"),
                    unit="ops",
                    stacked=True,
                ),
            ),
            row(
                "How long they take",
                "**How to read it.** To the end of the answer, streams left out. A move takes some "
                "milliseconds; the first request of a run or a game loads policies and kernels and "
                "may take seconds.",
                graph(
                    "Duration",
                    "Of all routes together.",
                    *quantiles(seconds, timed, 0.5, 0.95, 0.99),
                    unit="s",
                    w=8,
                    line_at=((None, GREEN), (1, RED)),
                ),
                graph(
                    "95th percentile by route",
                    "",
                    *quantiles(seconds, timed, 0.95, by="route"),
                    unit="s",
                    w=8,
                ),
                heatmap(
                    "Durations",
                    "",
                    f"sum by (le) (increase({seconds}_bucket{{{timed}}}{WAIT}))",
                    w=8,
                ),
            ),
            row(
                "Play",
                "**How to read it.** Games begun and ended by outcome, and who moves. Games in "
                "memory are bounded; one that is not there is read again from the database. A "
                "stream is one open page.",
                graph(
                    "Games",
                    "In the last 15 minutes, by what happened.",
                    (
                        f"sum by (event) (increase(rejoinder_gateway_games_total{{{here}}}{RARE}))",
                        "{{event}}",
                    ),
                    w=8,
                ),
                graph(
                    "Moves/s",
                    "",
                    (
                        f"sum by (by) ({rate('rejoinder_gateway_moves_total', here)})",
                        "by the {{by}}",
                    ),
                    unit="ops",
                    w=8,
                ),
                graph(
                    "Games in memory, streams",
                    "",
                    (f"rejoinder_gateway_cached_games{{{here}}}", "games of {{instance}}"),
                    (f"rejoinder_gateway_streams{{{here}}}", "streams of {{instance}}"),
                    w=8,
                ),
            ),
            row(
                "Machine",
                "**How to read it.** Memory holds the policies of the runs that were asked for.",
                *machine(f'job="rejoinder-gateway",{here}', w=12),
            ),
        ],
    )


def machine(process: str, w: int = 6) -> list[Json]:
    """What the processes take of their machines."""
    return [
        graph(
            "Memory",
            "Resident.",
            (f"process_resident_memory_bytes{{{process}}}", "{{instance}}"),
            unit="bytes",
            w=w,
        ),
        graph(
            "Cores in use",
            "1 is one core altogether.",
            (rate("process_cpu_seconds_total", process), "{{instance}}"),
            w=w,
        ),
    ]


if __name__ == "__main__":
    main()
