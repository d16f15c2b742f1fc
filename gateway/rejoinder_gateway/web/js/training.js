/**
 * Training: the runs there are, and one of them as it goes on.
 *
 * @typedef {{games: number, mer?: number, exploitability?: number, infosets?: number, updates?: Record<string, number>, regret?: Record<string, number>,
 *   policy?: Record<string, number>, matches?: Record<string, import("./scores.js").Match>}} Record_
 */

import { run as readRun, runEvents, runHistory, runs as readRuns } from "./api.js";
import { onRecovery } from "./connection.js";
import { forecastPanel } from "./forecast_panel.js";
import { responsesPanel } from "./responses_panel.js";
import { address } from "./router.js";
import { inWords } from "./scores.js";
import { follow } from "./stream.js";
import { Rates, trainingCharts } from "./training_charts.js";
import { bar, count, duration, empty, failure, fill, h, loading, number, percent } from "./ui.js";

const LOOK = 3000; // milliseconds between two looks at the list
const DRAW = 400; // between an event and the charts that show it

/** @type {import("./router.js").View} */
export function trainingView(main, route) {
  return route.argument ? oneRun(main, route.argument) : allRuns(main);
}

/** @param {HTMLElement} main */
function allRuns(main) {
  let left = false;
  let timer = 0;
  const body = h("div", {}, loading("the runs"));
  fill(main, heading("Training", "Every run in the gateway's folder, live while its learner is at work."), body);

  async function look() {
    try {
      const found = await readRuns();
      if (left) return;
      fill(body, found.length ? h("ul", { class: "runs" }, ...found.map(runCard)) : noRuns());
    } catch (error) {
      if (!left) fill(body, failure(error, look));
    }
    clearTimeout(timer);
    if (!left) timer = setTimeout(look, LOOK);
  }

  look();
  const stop = onRecovery(look);
  return () => {
    left = true;
    clearTimeout(timer);
    stop();
  };
}

/** @param {any} run */
function runCard(run) {
  const share = run.target ? run.games / run.target : 0;
  return h(
    "li",
    { class: "panel run" },
    h(
      "div",
      { class: "run__head" },
      h("h2", {}, h("a", { href: address("training", run.name), "data-key": `run-${run.name}`, text: run.name })),
      stateTag(run),
    ),
    h("p", { class: "hint", text: `${run.game} · ${run.abstraction === "none" ? "no" : run.abstraction} abstraction · ${count(run.infosets ?? 0, "infoset")}` }),
    bar(share),
    h("p", { class: "run__progress", text: `${number(run.games)} of ${count(run.target, "game")}${run.games_per_second ? ` · ${number(run.games_per_second, 1)} a second` : ""}` }),
    scores(run.matches, run.utility_unit),
  );
}

/** @param {HTMLElement} main @param {string} name */
function oneRun(main, name) {
  let left = false;
  let timer = 0;
  /** @type {Map<number, Record_>} */
  const records = new Map();
  const speed = new Rates();
  const tiles = h("div");
  const charts = trainingCharts();
  const forecast = forecastPanel(name);
  let unit = "points"; // of the game's utility
  const responses = responsesPanel(name);
  /** @type {(() => void)[]} */
  const endings = [];

  /** @param {any} run */
  function status(run) {
    if (left) return;
    unit = run.utility_unit;
    if (run.games_per_second) speed.add({ time: new Date(), rate: run.games_per_second });
    fill(tiles, runTiles(run));
    responses.update(run);
    draw();
  }

  /** Soon: events come in bursts, and charts are slow. */
  function draw() {
    timer ||= setTimeout(drawNow, DRAW);
  }

  function drawNow() {
    clearTimeout(timer);
    timer = 0;
    if (left) return;
    const all = [...records.values()].sort((a, b) => a.games - b.games);
    charts.draw(all, speed.points, unit);
    forecast.update(all, unit);
  }

  async function begin() {
    fill(main, loading(`the run ${name}`));
    let run;
    try {
      const [found, past] = await Promise.all([readRun(name), runHistory(name)]);
      run = found;
      for (const record of past) records.set(record.games, record);
    } catch (error) {
      if (!left) fill(main, heading("Training", ""), failure(error, begin));
      return;
    }
    if (left) return;
    fill(
      main,
      h(
        "div",
        { class: "page-head" },
        h("div", {}, h("p", {}, h("a", { href: "#/training", text: "All runs" })), h("h1", { text: name })),
        h(
          "div",
          { class: "buttons" },
          h("a", { class: "button", href: address("policy", name), text: "Its policy" }),
          h("a", { class: "button", href: "#/play", text: "Play" }),
        ),
      ),
      tiles,
      forecast.element,
      charts.element,
      run.has_responses ? responses.element : null,
      details(run),
    );
    status(run);
    drawNow();
    if (endings.length) return;
    endings.push(
      follow({
        address: () => runEvents(name),
        handlers: {
          status,
          record: (record) => {
            records.set(record.games, { ...records.get(record.games), ...record });
            draw();
          },
        },
        look: catchUp,
      }),
    );
  }

  /** What the stream did not tell while there was none. */
  async function catchUp() {
    const [run, past] = await Promise.all([readRun(name), runHistory(name)]);
    for (const record of past) records.set(record.games, record);
    status(run);
  }

  const repaint = () => charts.paint();
  addEventListener("themechange", repaint);
  begin();
  return () => {
    left = true;
    clearTimeout(timer);
    forecast.end();
    responses.end();
    removeEventListener("themechange", repaint);
    for (const end of endings) end();
  };
}

/** @param {any} run */
function runTiles(run) {
  const running = run.state === "running";
  const workers = run.alive ? run.workers.length : 0;
  /** @type {[string, string, string][]} */
  const tiles = [
    ["Games", number(run.games), `of ${number(run.target)}`],
    ["Throughput", number(run.games_per_second, 1), "games a second"],
    ["Time left", duration(run.seconds_left), running ? "at this speed" : STATES[run.state].toLowerCase()],
    ["MER", number(run.mer, 4), "lower is better"],
    ...(run.exploitability === null ? [] : [["Exploitability", number(run.exploitability, 4), "exact; 0 is equilibrium"]]),
    ["Infosets", number(run.infosets), run.version === null ? "" : `snapshot version ${number(run.version)}`],
    ["Workers", number(workers), workers ? "at work" : "none at work"],
  ];
  return h(
    "div",
    { class: "standing" },
    h("div", { class: "standing__line" }, stateTag(run), bar(run.target ? run.games / run.target : 0), h("span", { text: percent(run.target ? run.games / run.target : 0) })),
    h(
      "dl",
      { class: "tiles" },
      ...tiles.map(([term, value, note]) => h("div", { class: "panel tile" }, h("dt", { text: term }), h("dd", {}, h("strong", { "data-tile": term, text: value }), h("span", { class: "hint", text: note })))),
    ),
  );
}

/** @param {any} run */
function details(run) {
  return h(
    "details",
    { class: "panel run__details" },
    h("summary", { text: "Configuration" }),
    h(
      "dl",
      { class: "pairs" },
      ...Object.entries({ fingerprint: run.fingerprint, digest: run.digest, ...run.config })
        .filter(([, value]) => value !== null)
        .map(([name, value]) => h("div", {}, h("dt", { text: name }), h("dd", {}, h("code", { text: typeof value === "object" ? JSON.stringify(value) : String(value) })))),
    ),
  );
}

/** @param {Record<string, import("./scores.js").Match>} matches @param {string} unit */
function scores(matches, unit) {
  const entries = Object.entries(matches ?? {});
  if (!entries.length) return h("p", { class: "hint", text: "Not evaluated yet." });
  return h("p", { class: "run__rates" }, "Mean utility: ", ...entries.flatMap(([name, match]) => [h("br"), h("strong", { text: inWords(match, unit) }), ` against ${name}`]));
}

/** The gateway's states, in words. @type {Record<string, string>} */
const STATES = { new: "Not started", starting: "Starting", waiting: "Waiting for workers", running: "Training", finished: "Finished", stopped: "Stopped", gone: "Interrupted" };

/** @param {any} run */
function stateTag(run) {
  return h("span", { class: run.alive ? "tag tag--live" : "tag", "data-state": run.state, text: STATES[run.state] });
}

function noRuns() {
  return empty("No runs yet", "Train one and it appears here by itself, live from its first game.", h("code", { text: "rejoinder train paper" }));
}

/** @param {string} title @param {string} text */
function heading(title, text) {
  return h("div", { class: "page-head" }, h("div", {}, h("h1", { text: title }), h("p", { class: "lede", text })));
}
