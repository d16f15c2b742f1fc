/**
 * When a run reaches a target: a chooser, and the gateway's forecast in a sentence.
 *
 * The forecast is asked for again when there are new evaluations, a few seconds after the last one at
 * the earliest.
 *
 * @typedef {import("./training.js").Record_} Record_
 * @typedef {{at: number, what: string, target: number, reached: number|null, games: number|null, low: number|null, high: number|null,
 *   chance: number|null, level: [number, number, number]|null, seconds: number|null, seconds_low: number|null,
 *   seconds_high: number|null, backtest: Backtest|null}} Forecast
 * @typedef {{known: number, games: number, said: [number, number, number], was: number, held: boolean}} Backtest
 */

import { ApiError, forecast as readForecast } from "./api.js";
import { countsWins } from "./scores.js";
import { count, duration, failure, field, fill, h, number, percent, select, signed } from "./ui.js";

const FEWEST = 8; // evaluations that a forecast needs
const AGAIN = 5000; // milliseconds between two forecasts of one target
const TYPING = 400; // after the last change of the target
const MER = "mer";
const EXPLOITABILITY = "exploitability";
/** Figures to get down to. @type {Record<string, string>} */
const REGRETS = { [MER]: "MER", [EXPLOITABILITY]: "Exploitability" };
const NONE_YET = 409;
const STEPS = [0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99];

/** @param {string} name of the run */
export function forecastPanel(name) {
  /** @type {Record_[]} */
  let records = [];
  /** @type {{what: string, value: number}|null} what is asked for; null until something was measured */
  let target = null;
  let asked = 0;
  let askedAt = -Infinity;
  let known = ""; // what the last forecast knew
  let timer = 0;
  let left = false;
  let unit = "";
  const chooser = h("div", { class: "forecast__chooser" });
  const answer = h("div", { class: "forecast__answer", "aria-live": "polite" });
  const element = h(
    "section",
    { class: "panel forecast", "aria-labelledby": "forecast-title" },
    h(
      "div",
      { class: "forecast__ask" },
      h("header", {}, h("h2", { id: "forecast-title", text: "Forecast" }), h("p", { class: "hint", text: "When training reaches a target, by the curve that is fitted to its evaluations." })),
      chooser,
    ),
    answer,
  );

  /** @param {{what: string, value: number}} wanted @param {number} wait */
  function choose(wanted, wait) {
    target = wanted;
    known = "";
    soon(wait);
  }

  /** @param {number} wait */
  function soon(wait) {
    clearTimeout(timer);
    timer = setTimeout(ask, wait);
  }

  async function ask() {
    timer = 0;
    if (left || !target) return;
    const wrong = problemOf(target, kindOf(records, target.what, unit));
    const measured = figuresOf(records, target.what).length;
    if (wrong || measured < FEWEST) {
      asked += 1; // an answer that is on its way is for nothing
      return fill(answer, h("p", { class: "hint", text: wrong || notYet(target.what, measured) }));
    }
    const mine = (asked += 1);
    [known, askedAt] = [newest(records, target.what), Date.now()];
    if (!answer.childElementCount) fill(answer, h("p", { class: "hint", role: "status", text: "Fitting the curve…" }));
    try {
      const told = await readForecast(name, { what: target.what, target: target.value });
      if (mine === asked && !left) fill(answer, ...inWords(told, kindOf(records, target.what, unit)));
    } catch (error) {
      if (mine !== asked || left) return;
      const unsaid = error instanceof ApiError && error.status === NONE_YET;
      fill(answer, unsaid ? h("p", { class: "hint", text: `${error.message}.` }) : failure(error, ask));
    }
  }

  /** The controls, when there are opponents that were not there before. */
  function offer() {
    const whats = [...regretsOf(records), ...opponentsOf(records)];
    if (chooser.dataset.offered === whats.join()) return;
    chooser.dataset.offered = whats.join();
    target ??= usual(records, MER, unit);
    fill(chooser, ...controls(records, whats, target, unit, choose));
  }

  return {
    element,
    /** @param {Record_[]} all the run's evaluations, in order @param {string} counted the unit of the game's utility */
    update(all, counted) {
      [records, unit] = [all, counted];
      offer();
      if (target && newest(records, target.what) !== known && !timer) soon(Math.max(0, askedAt + AGAIN - Date.now()));
    },
    end() {
      left = true;
      clearTimeout(timer);
    },
  };
}

/**
 * @param {Record_[]} records
 * @param {string[]} whats
 * @param {{what: string, value: number}} target
 * @param {string} unit
 * @param {(wanted: {what: string, value: number}, wait: number) => void} choose
 */
function controls(records, whats, target, unit, choose) {
  let { what } = target;
  const kind = () => kindOf(records, what, unit);
  const value = /** @type {HTMLInputElement} */ (
    h("input", { type: "number", id: "forecast-value", step: "any", oninput: () => choose({ what, value: value.value === "" ? NaN : Number(value.value) / kind().scale }, TYPING) })
  );
  const place = h("div");

  /** @param {{what: string, value: number}} shown */
  function show(shown) {
    what = shown.what;
    value.value = String(Number((shown.value * kind().scale).toPrecision(6)));
    fill(place, field(kind().label, value));
  }

  const chosen = select(
    whats.map((one) => ({ value: one, text: kindOf(records, one, unit).title })),
    what,
    (one) => {
      const wanted = usual(records, one, unit);
      show(wanted);
      choose(wanted, 0);
    },
    { id: "forecast-what" },
  );
  show(target);
  return [field("What", chosen), place];
}

/**
 * How figures of a kind are named, typed and shown. Win rates are typed in percent.
 *
 * @typedef {{title: string, label: string, scale: number, figure: (value: number) => string, goal: (value: number) => string,
 *   isTarget: (value: number) => boolean, wrong: string}} Kind
 * @param {Record_[]} records
 * @param {string} what
 * @param {string} unit
 * @returns {Kind}
 */
function kindOf(records, what, unit) {
  const short = (/** @type {number} */ value) => value.toLocaleString("en", { maximumSignificantDigits: 6 });
  if (what in REGRETS) {
    const title = what === MER ? "Maximum expected regret (MER)" : REGRETS[what];
    const isTarget = (/** @type {number} */ value) => value > 0 && value < Infinity;
    return { title, label: "Down to", scale: 1, figure: (value) => number(value, 4), goal: (value) => `${REGRETS[what]} ${short(value)}`, isTarget, wrong: "Choose a figure above 0." };
  }
  if (countsWins(matchesOf(records, what))) {
    const isTarget = (/** @type {number} */ value) => value > 0 && value < 1;
    return { title: `Win rate against ${what}`, label: "Up to, in %", scale: 100, figure: rate, goal: (value) => `A win rate of ${rate(value)} against ${what}`, isTarget, wrong: "Choose a win rate between 0 and 100 %." };
  }
  const goal = (/** @type {number} */ value) => `A mean of ${short(value)} ${unit} a game against ${what}`;
  return { title: `Mean utility against ${what}`, label: `Up to, in ${unit} a game`, scale: 1, figure: (value) => signed(value, 3), goal, isTarget: Number.isFinite, wrong: "Choose a number." };
}

/** The next round figure that is not reached yet. @param {Record_[]} records @param {string} what @param {string} unit */
function usual(records, what, unit) {
  const now = figuresOf(records, what).at(-1);
  if (what in REGRETS) return { what, value: now ? roundBelow(now) : 0.01 };
  if (kindOf(records, what, unit).scale === 1) return { what, value: Math.floor((now ?? 0) * 10 + 1 + 1e-9) / 10 };
  return { what, value: STEPS.find((step) => step > (now ?? 0)) ?? 0.999 };
}

/** The largest of …, 0.01, 0.02, 0.05, 0.1, … below a figure. @param {number} figure */
function roundBelow(figure) {
  const power = 10 ** Math.floor(Math.log10(figure));
  const step = [5, 2, 1].find((one) => one * power < figure * 0.999) ?? 0.5;
  return Number((step * power).toPrecision(1));
}

/** @param {Record_[]} records @param {string} what @returns {number[]} */
function figuresOf(records, what) {
  const figures = what in REGRETS ? records.map((record) => record[/** @type {"mer"|"exploitability"} */ (what)]) : matchesOf(records, what).map((match) => match.win_rate ?? match.mean_utility);
  return /** @type {number[]} */ (figures.filter((figure) => typeof figure === "number"));
}

/** @param {Record_[]} records @param {string} opponent */
const matchesOf = (records, opponent) => records.flatMap(({ matches }) => matches?.[opponent] ?? []);

/** MER, and exploitability where it is measured. @param {Record_[]} records */
const regretsOf = (records) => (figuresOf(records, EXPLOITABILITY).length ? [MER, EXPLOITABILITY] : [MER]);

/** Those of all evaluations: one may not have them all yet. @param {Record_[]} records */
const opponentsOf = (records) => [...new Set(records.flatMap(({ matches }) => Object.keys(matches ?? {})))];

/** Changes when there is more to go by. @param {Record_[]} records @param {string} what */
const newest = (records, what) => `${figuresOf(records, what).length} ${records.at(-1)?.games}`;

/** @param {{what: string, value: number}} target @param {Kind} kind */
const problemOf = ({ value }, { isTarget, wrong }) => (isTarget(value) ? "" : wrong);

/** @param {string} what @param {number} measured */
function notYet(what, measured) {
  return `Nothing can be said yet: a forecast needs ${FEWEST} evaluations${what in REGRETS ? "" : ` against ${what}`}, and there ${measured === 1 ? "is" : "are"} ${measured || "none"} so far.`;
}

/** @param {Forecast} told @param {Kind} kind */
function inWords(told, kind) {
  return [h("p", { class: "forecast__sentence", text: sentence(told, kind) }), told.games === null ? null : track(told), told.backtest ? h("p", { class: "hint", text: pastInWords(told.backtest, kind) }) : null].filter((part) => part !== null);
}

/** @param {Forecast} told @param {Kind} kind */
function sentence(told, kind) {
  const { at, target, reached, games, low, high, chance, level } = told;
  const { figure } = kind;
  const goal = kind.goal(target);
  if (reached !== null) return `${goal} was reached after ${count(reached, "game")}.`;
  if (games === null) {
    const [least, middle, most] = level ?? [0, 0, 0];
    const ends = `the fitted curve levels off at ${figure(middle)} (90 %: ${figure(least)} to ${figure(most)})`;
    const some = chance ? `${percent(chance)} of the refits get there` : "none of the refits gets there";
    if (low !== null) return `${goal} is unlikely by this curve: ${some}; ${ends}.`;
    return `${goal} is not expected, however long it trains: ${ends}, and ${some}.`;
  }
  const interval = `90 %: ${rounded(low ?? 0)} to ${high === null ? "no end" : rounded(high)}`;
  const ahead = Number(games.toPrecision(3)) - at;
  const more = ahead > 0 ? `${rounded(ahead)} more than now` : "about now";
  return `${goal} is expected after ${rounded(games)} games (${interval}), ${time(told) ?? more}; the chance that it ever gets there, by the refits, is ${percent(chance ?? 0)}.`;
}

/** From now until then; null: nobody knows how fast. @param {Forecast} told */
function time({ seconds, seconds_low: low, seconds_high: high }) {
  if (seconds === null) return null;
  const middle = seconds > 0 ? `${duration(seconds)} from now` : "about now";
  return `${middle} at this speed (${duration(low)} to ${high === null ? "no end" : duration(high)})`;
}

/** @param {Backtest} backtest @param {Kind} kind */
function pastInWords({ known, games, said: [low, value, high], was, held }, { figure }) {
  return `Backtest: from the first ${count(known, "game")} alone it would have said ${figure(value)} (${figure(low)} to ${figure(high)}) after ${number(games)}; it was ${figure(was)}, ${held ? "inside" : "outside, so do not trust it too much"}.`;
}

/** Where the run is, and where the target is expected, on a line of games. @param {Forecast} told */
function track({ at, games, low, high }) {
  const [from, middle] = [low ?? 0, games ?? 0];
  const to = high ?? Math.max(2 * middle, at);
  const end = Math.max(at, to) * 1.04;
  const part = (/** @type {number} */ place) => Math.min(1, place / end);
  return h(
    "div",
    { class: `track${high === null ? " track--open" : ""}`, "aria-hidden": "true", style: { "--now": part(at), "--low": part(from), "--middle": part(middle), "--high": high === null ? 1 : part(to) } },
    h("span", { class: "track__line" }, h("i", { class: "track__done" }), h("i", { class: "track__range" }), h("i", { class: "track__middle" })),
    h("span", { class: "track__legend" }, mark("done", `trained: ${number(at)}`), mark("middle", `expected: ${rounded(middle)}`), mark("range", `90 %: ${rounded(from)} to ${high === null ? "no end" : rounded(to)}`)),
  );
}

/** @param {string} kind @param {string} text */
const mark = (kind, text) => h("span", {}, h("i", { class: `track__key track__key--${kind}` }), text);

/** @param {number} share */
const rate = (share) => `${number(share * 100, 1)}\u00a0%`;

/** To three digits: more would be make-believe. @param {number} games */
const rounded = (games) => number(Number(games.toPrecision(3)));
