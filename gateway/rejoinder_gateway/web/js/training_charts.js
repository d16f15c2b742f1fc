/**
 * The charts of a run: win rates, MER, update counts, policy, throughput.
 *
 * @typedef {import("./training.js").Record_} Record_
 */

import { figure } from "./chart.js";
import { h, number, percent, readable } from "./ui.js";

const GAMES = { title: { text: "training games", standoff: 8 }, rangemode: "tozero" };
const TALL = 340; // pixels, for a row whose legend is long

export function trainingCharts() {
  const wins = figure("Win rate", "Against each baseline, with its 95 % confidence band.");
  const mer = figure("Maximum expected regret", "How much the policy could still gain, weighted by reach. Lower is better.");
  const updates = figure("Updates by infoset", "Least, median and most updates an infoset has had, on a log scale.");
  const policy = figure("Policy evolution", "The median probability of each action, over the infosets where it is a choice.");
  const speed = figure("Throughput", "Games a second since this page was opened.");
  speed.element.classList.add("figure--wide");
  const figures = [speed, wins, mer, updates, policy];
  let drawn = ""; // how many records and evaluations the charts show
  const element = h("div", { class: "figures" }, ...figures.map((made) => made.element));

  return {
    element,
    paint: () => figures.forEach((made) => made.paint()),
    /**
     * @param {Record_[]} records
     * @param {{time: Date, rate: number}[]} rates
     */
    draw(records, rates) {
      const news = `${records.length} ${records.filter((record) => record.win_rates).length}`;
      if (news !== drawn) {
        drawn = news;
        drawWins(wins, records);
        drawMer(mer, records);
        drawUpdates(updates, records);
        drawPolicy(policy, records);
      }
      drawSpeed(speed, rates);
    },
  };
}

/** @typedef {ReturnType<typeof figure>} Figure */

/** @param {Figure} chart @param {Record_[]} records */
function drawWins(chart, records) {
  const rated = records.filter(({ win_rates: rates }) => rates);
  const last = rated.at(-1)?.win_rates ?? {};
  const names = Object.keys(last);
  const games = rated.map((record) => record.games);
  chart.draw(
    ({ line, band }) =>
      names.flatMap((name, k) => {
        const of = (/** @type {"win_rate"|"low"|"high"} */ what) => rated.map((record) => record.win_rates?.[name]?.[what] ?? null);
        return [
          { x: games, y: of("low"), mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false },
          { x: games, y: of("high"), mode: "lines", line: { width: 0 }, fill: "tonexty", fillcolor: band(k), hoverinfo: "skip", showlegend: false },
          { x: games, y: of("win_rate"), name, mode: "lines", line: line(k), hovertemplate: "%{y:.0%}" },
        ];
      }),
    { xaxis: GAMES, yaxis: { range: [0, 1.02], tickformat: ".0%" } },
    names.length ? `After ${number(games.at(-1))} games: ${names.map((name) => `${percent(last[name].win_rate)} against ${name}`).join(", ")}.` : "No evaluation yet.",
  );
}

/** @param {Figure} chart @param {Record_[]} records */
function drawMer(chart, records) {
  const last = records.at(-1);
  chart.draw(
    ({ line }) => [{ x: records.map((r) => r.games), y: records.map((r) => r.mer ?? null), name: "MER", mode: "lines", line: line(0), hovertemplate: "%{y:.4f}" }],
    { xaxis: GAMES, yaxis: { rangemode: "tozero" }, showlegend: false },
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
        mode: "lines",
        line: line(k),
        hovertemplate: "%{y:,.0f}",
      })),
    { xaxis: GAMES, yaxis: { type: "log", dtick: 1 }, height: TALL },
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
        mode: "lines",
        line: line(k),
        hovertemplate: "%{y:.0%}",
      })),
    { xaxis: GAMES, yaxis: { range: [0, 1.02], tickformat: ".0%" }, height: TALL },
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
    { yaxis: { rangemode: "tozero" }, showlegend: false, height: 160 },
    `${number(last.rate, 1)} games a second.`,
  );
}
