/**
 * The charts of a run: evaluations, MER, update counts, policy, throughput.
 *
 * @typedef {import("./training.js").Record_} Record_
 */

import { figure } from "./chart.js";
import { countsWins, utilityMeasure, WIN_RATE } from "./scores.js";
import { h, number, readable } from "./ui.js";

const FEW = 3;
const MOST_RATES = 2000;
const GAMES = { title: { text: "training games", standoff: 8 }, rangemode: "tozero" };

export function trainingCharts() {
  const utility = figure("Mean utility", "What it wins a game against each baseline.");
  const wins = figure(WIN_RATE.title, WIN_RATE.about);
  wins.element.hidden = true; // until an evaluation counts them
  const mer = figure("Maximum expected regret", "How much the policy could still gain, weighted by reach. Lower is better.");
  const updates = figure("Updates by infoset", "Least, median and most updates an infoset has had, on a log scale.");
  const policy = figure("Policy evolution", "The median probability of each action, over the infosets where it is a choice.");
  const speed = figure("Throughput", "Games a second since this page was opened.");
  speed.element.classList.add("figure--wide");
  const figures = [speed, utility, wins, mer, updates, policy];
  let drawn = ""; // how many records and evaluations the charts show
  const element = h("div", { class: "figures" }, ...figures.map((made) => made.element));

  return {
    element,
    paint: () => figures.forEach((made) => made.paint()),
    /**
     * @param {Record_[]} records
     * @param {{time: Date, rate: number}[]} rates
     * @param {string} unit of the game's utility
     */
    draw(records, rates, unit) {
      const news = `${records.length} ${records.filter((record) => record.matches).length}`;
      if (news !== drawn) {
        drawn = news;
        drawScore(utility, records, utilityMeasure(unit));
        wins.element.hidden = !countsWins(records.flatMap(({ matches }) => Object.values(matches ?? {})));
        if (!wins.element.hidden) drawScore(wins, records, WIN_RATE);
        drawMer(mer, records);
        drawUpdates(updates, records);
        drawPolicy(policy, records);
      }
      drawSpeed(speed, rates);
    },
  };
}

/** Throughput over time. A page may stay open for days: of too many points every other one goes, and so on. */
export class Rates {
  constructor() {
    /** @type {{time: Date, rate: number}[]} */
    this.points = [];
    this.seen = 0;
    this.every = 1; // of those seen is kept, and the newest
  }

  /** @param {{time: Date, rate: number}} point */
  add(point) {
    if ((this.seen - 1) % this.every !== 0) this.points.pop(); // was there only as the newest
    if (this.points.length >= MOST_RATES) {
      this.points = this.points.filter((_, k) => k % 2 === 0);
      this.every *= 2;
    }
    this.points.push(point);
    this.seen += 1;
  }
}

/** @typedef {ReturnType<typeof figure>} Figure */

/** A line of one point would not be seen. @param {Record_[]} records */
const mode = (records) => (records.length < FEW ? "lines+markers" : "lines");

/** @param {Figure} chart @param {Record_[]} records @param {ReturnType<typeof utilityMeasure>|typeof WIN_RATE} measure */
function drawScore(chart, records, measure) {
  const played = records.filter(({ matches }) => matches);
  const last = played.at(-1)?.matches ?? {};
  const names = Object.keys(last);
  const games = played.map((record) => record.games);
  chart.name(measure.title, measure.about);
  chart.draw(
    ({ line, band }) =>
      names.flatMap((name, k) => {
        const of = (/** @type {(match: import("./scores.js").Match) => number} */ what) => played.map(({ matches }) => (matches?.[name] ? what(matches[name]) : null));
        const edge = { x: games, mode: "lines", line: { width: 0 }, hoverinfo: "skip" };
        const main = { x: games, y: of(measure.of), name, mode: mode(played), line: line(k), hovertemplate: measure.hover };
        return [{ ...edge, y: of((match) => measure.band(match)[0]) }, { ...edge, y: of((match) => measure.band(match)[1]), fill: "tonexty", fillcolor: band(k) }, main];
      }),
    { xaxis: GAMES, yaxis: measure.axis },
    names.length ? `After ${number(games.at(-1))} games: ${names.map((name) => `${measure.text(last[name])} against ${name}`).join(", ")}.` : "No evaluation yet.",
  );
}

/** @param {Figure} chart @param {Record_[]} records */
function drawMer(chart, records) {
  const last = records.at(-1);
  chart.draw(
    ({ line }) => [{ x: records.map((r) => r.games), y: records.map((r) => r.mer ?? null), name: "MER", mode: mode(records), line: line(0), hovertemplate: "%{y:.4f}" }],
    { xaxis: GAMES, yaxis: { rangemode: "tozero" } },
    last?.mer === undefined ? "Nothing measured yet." : `Now ${number(last.mer, 4)}.`,
  );
}

/** @param {Figure} chart @param {Record_[]} records */
function drawUpdates(chart, records) {
  const last = records.at(-1)?.updates;
  const shown = { max: "most", median: "median", min: "least" };
  chart.draw(
    ({ line }) =>
      Object.entries(shown).map(([quantile, name], k) => ({
        x: records.map((r) => r.games),
        y: records.map((r) => r.updates?.[quantile] || null),
        name,
        mode: mode(records),
        line: line(k),
        hovertemplate: "%{y:,.0f}",
      })),
    { xaxis: GAMES, yaxis: { type: "log", dtick: 1 } },
    last ? `Now: median ${number(last.median)}, most ${number(last.max)}.` : "Nothing measured yet.",
  );
}

/** @param {Figure} chart @param {Record_[]} records */
function drawPolicy(chart, records) {
  const last = records.at(-1)?.policy ?? {};
  const names = Object.keys(last);
  chart.draw(
    ({ line }) =>
      names.map((name, k) => ({
        x: records.map((r) => r.games),
        y: records.map((r) => r.policy?.[name] ?? null),
        name: readable(name),
        mode: mode(records),
        line: line(k),
        hovertemplate: "%{y:.0%}",
      })),
    { xaxis: GAMES, yaxis: { range: [0, 1.02], tickformat: ".0%" } },
    names.length ? `Likeliest now, where it is a choice: ${readable(names.reduce((a, b) => (last[a] >= last[b] ? a : b))).toLowerCase()}.` : "Nothing measured yet.",
  );
}

/** @param {Figure} chart @param {{time: Date, rate: number}[]} rates */
function drawSpeed(chart, rates) {
  const last = rates.at(-1);
  chart.element.hidden = !last;
  if (!last) return; // the run was never seen at work
  chart.draw(
    ({ line, band }) => [{ x: rates.map(({ time }) => time), y: rates.map(({ rate }) => rate), mode: "lines", line: line(0), fill: "tozeroy", fillcolor: band(0), hovertemplate: "%{y:.1f} a second" }],
    { yaxis: { rangemode: "tozero" }, height: 160 },
    `${number(last.rate, 1)} games a second.`,
  );
}
