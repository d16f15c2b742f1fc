/**
 * Replay: a finished game step by step, with both hands and what the agent made of its decisions.
 *
 * A step is a move with the draws that follow it; the first is the deal.
 *
 * @typedef {{number: number, actor: number|null, name: string, views: any[], decision: any}} Step
 */

import { ApiError, gameApi } from "./api.js";
import { cardName, tell } from "./play/deal_events.js";
import { dealTable } from "./play/deal_table.js";
import { viewPanels } from "./play/generic_table.js";
import { address, noteInAddress } from "./router.js";
import { games } from "./store.js";
import { announce, count, empty, failure, fill, h, loading, moment, shortTitle, weighed } from "./ui.js";

const PLAY_PACE = 1100; // milliseconds a step

/** @type {import("./router.js").View} */
export function replayView(main, route) {
  if (!route.argument) {
    fill(main, list());
    return () => {};
  }
  let left = false;
  let end = () => {};
  const id = route.argument;
  const known = games()[id];
  if (!known) {
    fill(main, empty("That game is not here", "This browser does not hold its secret. Replays are for whoever played the game.", toList()));
    return () => {};
  }

  async function begin() {
    fill(main, loading("the game"));
    try {
      const api = gameApi(id, known.secret);
      const [game, steps] = await Promise.all([api.state(), api.replay()]);
      if (!left) end = showGame(main, game, grouped(steps), Number(route.query.get("step") ?? 0));
    } catch (error) {
      if (left) return;
      const unfinished = error instanceof ApiError && [403, 409].includes(error.status);
      fill(main, unfinished ? empty("The game is not over yet", "A replay shows both hands, so it has to wait for the end.", h("a", { class: "button button--main", href: address("play", id), text: "Play on" })) : failure(error, begin));
    }
  }

  begin();
  return () => {
    left = true;
    end();
  };
}

/** The finished games that this browser has played. */
function list() {
  const finished = Object.entries(games()).filter(([, game]) => game.outcome);
  const words = /** @type {Record<string, string>} */ ({ won: "Won", lost: "Lost", draw: "Draw", resigned: "Resigned" });
  const head = h("div", { class: "page-head" }, h("div", {}, h("h1", { text: "Replay" }), h("p", { class: "lede", text: "Finished games of this browser, with everything that was hidden while they lasted." })));
  if (!finished.length) return h("div", {}, head, empty("Nothing to replay yet", "Finish a game, and you can go through it here step by step.", h("a", { class: "button button--main", href: "#/play", text: "Play" })));
  return h(
    "div",
    {},
    head,
    h(
      "ul",
      { class: "runs" },
      ...finished.map(([id, game]) =>
        h(
          "li",
          { class: "panel run" },
          h("div", { class: "run__head" }, h("h2", {}, h("a", { href: address("replay", id), text: game.title })), h("span", { class: game.outcome === "won" ? "tag tag--live" : "tag", text: words[game.outcome ?? ""] ?? game.outcome })),
          h("p", { class: "hint", text: `Against ${game.opponent}` }),
          h("p", { class: "hint" }, moment(game.begun)),
        ),
      ),
    ),
  );
}

/**
 * @param {HTMLElement} main
 * @param {any} game
 * @param {{moves: Step, draws: Step[]}[]} steps
 * @param {number} first
 */
function showGame(main, game, steps, first) {
  const last = steps.length - 1;
  let place = Math.max(0, Math.min(last, first));
  let timer = 0;
  const slider = /** @type {HTMLInputElement} */ (h("input", { type: "range", min: 0, max: last, value: place, id: "step", "aria-label": "Step", oninput: () => go(Number(slider.value)) }));
  const where = h("output", { for: "step", class: "replay__where" });
  const table = h("div");
  const side = h("aside", { class: "panel replay__side", "aria-label": "This step" });
  const play = h("button", { class: "button button--main", type: "button", onclick: () => (timer ? stop() : start()), text: "Play" });
  /** @param {string} text @param {string} label @param {() => void} onclick */
  const button = (text, label, onclick) => h("button", { class: "button", type: "button", "aria-label": label, onclick, text });

  fill(
    main,
    h(
      "div",
      { class: "page-head" },
      h("div", {}, h("p", {}, h("a", { href: "#/replay", text: "All replays" })), h("h1", { text: shortTitle(game.title) }), h("p", { class: "lede", text: outcomeWords(game) })),
    ),
    h(
      "div",
      { class: "panel replay__bar", role: "group", "aria-label": "Steps" },
      button("First", "First step", () => go(0)),
      button("Previous", "Previous step", () => go(place - 1)),
      play,
      button("Next", "Next step", () => go(place + 1)),
      button("Last", "Last step", () => go(last)),
      slider,
      where,
    ),
    h("div", { class: "play" }, table, side),
  );

  /** @param {number} to */
  function go(to) {
    place = Math.max(0, Math.min(last, to));
    if (place === last) stop();
    slider.value = String(place);
    slider.setAttribute("aria-valuetext", `Step ${place} of ${last}`);
    where.textContent = `${place} / ${last}`;
    noteInAddress({ step: String(place) });
    draw();
  }

  function draw() {
    const { moves: step, draws } = steps[place];
    const before = place ? steps[place - 1].moves.views[game.seat] : null;
    const told = stepWords(game, step, draws, before);
    fill(table, game.game === "deal" ? dealReplay(game, step, told) : h("div", { class: "table" }, ...viewPanels(step.views[game.seat], game.seat, "What you saw"), ...viewPanels(step.views[1 - game.seat], 1 - game.seat, "What the agent saw")));
    fill(side, ...sideOf(step, told, place));
    if (place) announce(told[0]);
  }

  function start() {
    if (place === last) go(0);
    play.textContent = "Pause";
    timer = setInterval(() => go(place + 1), PLAY_PACE);
  }

  function stop() {
    clearInterval(timer);
    timer = 0;
    play.textContent = "Play";
  }

  /** @param {KeyboardEvent} event */
  function keys(event) {
    if (event.target === slider || event.altKey || event.ctrlKey || event.metaKey) return; // the slider has its own
    const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    go(to);
  }

  addEventListener("keydown", keys);
  go(place);
  return () => {
    stop();
    removeEventListener("keydown", keys);
  };
}

/** @param {any} game @param {Step} step @param {string[]} told */
function dealReplay(game, step, told) {
  const view = step.views[game.seat];
  return dealTable({
    view,
    legal: [],
    touched: [],
    streak: game.rules.streak,
    headline: told[0],
    note: step.actor === null ? "" : told.slice(1).join(". "),
    onMove: null,
    opponentHand: step.views[1 - game.seat].hand,
  });
}

/** @param {Step} step @param {string[]} told @param {number} place */
function sideOf(step, told, place) {
  return [
    h("h2", { text: place ? `Move ${place}` : "The deal" }),
    ...told.map((text) => h("p", { text })),
    step.decision
      ? h(
          "section",
          { class: "replay__decision" },
          h("h3", { text: "What the agent weighed" }),
          weighed(step.decision, (a) => (a.move === step.decision.move ? "played" : null)),
          h("p", { class: "hint" }, step.decision.search ? `Thought ahead: ${count(step.decision.search, "sample")}, and what each move won in them on average. ` : "", step.decision.visits === null ? "A baseline: nothing was learnt." : `Updated ${count(step.decision.visits, "time")} in training.`, h("br"), h("code", { text: step.decision.identifier })),
        )
      : null,
  ];
}

/** Moves, each with the draws after it. @param {Step[]} steps */
function grouped(steps) {
  /** @type {{moves: Step, draws: Step[]}[]} */
  const groups = [];
  for (const step of steps) {
    if (step.actor !== null || groups.length === 0) groups.push({ moves: step, draws: step.actor === null ? [step] : [] });
    else groups[groups.length - 1].draws.push(step);
  }
  return groups;
}

/** @param {any} game @param {Step} step @param {Step[]} draws @param {any} before */
function stepWords(game, step, draws, before) {
  const drawn = draws.map(({ name }) => (game.game === "deal" ? cardName(name) : name)).join(", ");
  if (step.actor === null) return ["The cards are dealt", `Dealt in order: ${drawn}`];
  const event = { ...step, text: "" };
  if (game.game !== "deal") return [`${step.actor === game.seat ? "You" : "The agent"}: ${step.name}`, ...(drawn ? [`Turned up: ${drawn}`] : [])];
  const drawer = step.views[game.seat].streak_player === game.seat ? "You draw" : "The agent draws";
  return [tell(event, game.seat, before ?? undefined), ...(drawn ? [`${drawer} ${drawn}`] : [])];
}

/** @param {any} game */
function outcomeWords(game) {
  const how = /** @type {Record<string, string>} */ ({ won: "You won", lost: "The agent won", draw: "A draw", resigned: "You resigned" })[game.outcome];
  return `${how} after ${count(game.move_number, "move")}. The arrow keys go from step to step.`;
}

function toList() {
  return h("a", { class: "button", href: "#/replay", text: "All replays" });
}
