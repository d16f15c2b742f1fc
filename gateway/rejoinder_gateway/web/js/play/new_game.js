/** The dialogues: a new game, and giving one up. */

import { catalogue, createGame, limits, runs } from "../api.js";
import { remember, remembered } from "../store.js";
import { count, failure, field, fill, h, loading, number, readable, select, shortTitle, words } from "../ui.js";
import { unfinishedGames } from "./unfinished.js";

const SAMPLES = 2000; // of what the agent cannot see, before each of its moves

/**
 * Ask for a game and create it, or go on with another one.
 * @param {{id: string, over: boolean}|null} present the game at the table
 * @returns {Promise<{secret: string, game: any, wanted: unknown}|null>} null if nothing was begun
 */
export function askForGame(present) {
  return inDialog("New game", async (body, close) => {
    fill(body, loading("the opponents"));
    try {
      const [known, trained, most] = await Promise.all([catalogue(), runs(), limits()]);
      fill(
        body,
        present && !present.over && h("p", { class: "note", text: "The game you are in stays as it is. You can continue it later: it will be listed here." }),
        form(known, trained, Math.min(SAMPLES, most.search_samples), close),
        unfinishedGames(present?.id),
      );
    } catch (error) {
      fill(body, failure(error));
    }
  });
}

/** @returns {Promise<boolean>} */
export async function confirmResign() {
  const answer = await inDialog("Resign this game?", (body, close) => {
    fill(
      body,
      h("p", { text: "It counts as lost. You can still look at the replay and at the agent's decisions." }),
      h(
        "div",
        { class: "buttons" },
        h("button", { class: "button button--main", type: "button", id: "resign-now", onclick: () => close(true), text: "Resign" }),
        h("button", { class: "button", type: "button", onclick: () => close(null), text: "Play on" }),
      ),
    );
  });
  return answer === true;
}

/**
 * @param {any[]} known the catalogue of games
 * @param {any[]} trained runs
 * @param {number} samples with which an agent thinks ahead; 0: none does
 * @param {(result: any) => void} close
 */
function form(known, trained, samples, close) {
  const last = remembered("choice", {});
  const chosen = { game: known.some(({ name }) => name === last.game) ? last.game : known[0].name, opponent: "", snapshot: "", configuration: last.configuration ?? "" };
  const opponents = h("div", { class: "dialog__part" });
  const error = h("p", { class: "warning", role: "alert", hidden: true });
  const begin = h("button", { class: "button button--main", type: "submit", id: "begin", text: "Begin" });
  const first = choices("Who starts", "first", [["you", "You"], ["agent", "The agent"], ["random", "At random"]], last.first ?? "you");
  /** @type {[string, string][]} */
  const styles = [["sample", "By its probabilities"], ["argmax", "Its likeliest action"]];
  if (samples > 0) styles.push(["search", "Thinking ahead: stronger"]);
  const style = choices("The agent plays", "style", styles, styles.some(([name]) => name === last.style) ? last.style : "sample");
  const open = h("input", { type: "checkbox", id: "open-game" });
  const warning = h("p", { class: "warning", hidden: true, text: "In an open game you see the agent's decisions as they are made: what it could have done and how likely each was. That gives its hand away. It is for analysis, not for a fair game." });
  open.addEventListener("change", () => (warning.hidden = !(/** @type {HTMLInputElement} */ (open).checked)));

  function drawOpponents() {
    const game = known.find(({ name }) => name === chosen.game);
    const agents = newestFirst(trained.filter((run) => run.game === game.name && run.snapshots.length));
    const options = [
      ...agents.map((run) => ({ value: `run:${run.name}`, text: `${run.name} · trained` })),
      ...game.baselines.map((/** @type {string} */ name) => ({ value: `baseline:${name}`, text: `${readable(name)} · baseline` })),
    ];
    const offered = (/** @type {string} */ opponent) => options.some(({ value }) => value === opponent);
    if (!offered(chosen.opponent)) chosen.opponent = !agents.length && offered(last.opponent) ? last.opponent : (options[0]?.value ?? "");
    const run = agents.find(({ name }) => `run:${name}` === chosen.opponent);
    const configurations = game.configurations.map((/** @type {any} */ c) => ({ value: c.full_name, text: c.name }));
    if (!configurations.some((/** @type {any} */ c) => c.value === chosen.configuration)) {
      chosen.configuration = (configurations.find((/** @type {any} */ c) => c.text === "medium") ?? configurations[0]).value;
    }
    style.hidden = !run;
    begin.toggleAttribute("disabled", options.length === 0);
    fill(
      opponents,
      field("Game", select(known.map(({ name, title }) => ({ value: name, text: shortTitle(title) })), chosen.game, (value) => redraw({ game: value, opponent: "", snapshot: "" }), { id: "game" })),
      options.length
        ? field("Opponent", select(options, chosen.opponent, (value) => redraw({ opponent: value, snapshot: "" }), { id: "opponent" }), agents.length ? undefined : "Nothing has been trained for this game yet: train a run, and it appears here.")
        : h("p", { class: "warning", text: "There is nobody to play this game against yet. Train a run of it first." }),
      run
        ? field(
            "As it was after",
            select(
              [{ value: "", text: `${number(run.snapshots.at(-1))} games (newest)` }, ...run.snapshots.slice(0, -1).reverse().map((/** @type {number} */ g) => ({ value: String(g), text: count(g, "game") }))],
              chosen.snapshot,
              (value) => (chosen.snapshot = value),
              { id: "snapshot" },
            ),
          )
        : configurations.length > 1
          ? field("Rules", select(configurations, chosen.configuration, (value) => (chosen.configuration = value), { id: "configuration" }))
          : null,
    );
  }

  /** @param {Partial<typeof chosen>} change */
  function redraw(change) {
    Object.assign(chosen, change);
    drawOpponents();
  }

  /** @param {SubmitEvent} event */
  async function submit(event) {
    event.preventDefault();
    const [kind, name] = [chosen.opponent.slice(0, chosen.opponent.indexOf(":")), chosen.opponent.slice(chosen.opponent.indexOf(":") + 1)];
    const wanted = {
      opponent: kind === "run" ? { run: name, snapshot: chosen.snapshot ? Number(chosen.snapshot) : null } : { baseline: name, configuration: chosen.configuration },
      first: picked(first),
      argmax: kind === "run" && picked(style) === "argmax",
      search: kind === "run" && picked(style) === "search" ? samples : 0,
      open: /** @type {HTMLInputElement} */ (open).checked,
    };
    begin.toggleAttribute("disabled", true);
    try {
      const created = await createGame(wanted);
      remember("choice", { ...chosen, first: picked(first), style: picked(style) });
      close({ ...created, wanted });
    } catch (problem) {
      error.textContent = `${words(problem).title}: ${words(problem).detail}`;
      error.hidden = false;
      begin.toggleAttribute("disabled", false);
    }
  }

  drawOpponents();
  return h(
    "form",
    { class: "dialog__form", onsubmit: submit },
    opponents,
    first,
    style,
    h("label", { class: "choice" }, open, "Open game: show the agent's decisions while it lasts"),
    warning,
    error,
    h("div", { class: "buttons" }, begin, h("button", { class: "button", type: "button", onclick: () => close(null), text: "Cancel" })),
  );
}

/** By when they last wrote a checkpoint. @param {any[]} trained */
const newestFirst = (trained) => trained.toSorted((a, b) => (b.checkpointed ?? 0) - (a.checkpointed ?? 0));

/** @param {string} label @param {string} name @param {[string, string][]} options @param {string} chosen */
function choices(label, name, options, chosen) {
  return h(
    "fieldset",
    {},
    h("legend", { text: label }),
    h(
      "div",
      { class: "choices" },
      ...options.map(([value, text]) => h("label", { class: "choice" }, h("input", { type: "radio", name, value, checked: value === chosen }), text)),
    ),
  );
}

/** @param {HTMLElement} group */
const picked = (group) => /** @type {HTMLInputElement} */ (group.querySelector(":checked")).value;

/**
 * @param {string} title
 * @param {(body: HTMLElement, close: (result: any) => void) => void} build
 * @returns {Promise<any>} what it was closed with
 */
function inDialog(title, build) {
  return new Promise((resolve) => {
    const body = h("div", { class: "dialog__form" });
    const dialog = /** @type {HTMLDialogElement} */ (h("dialog", { "aria-labelledby": "dialog-title" }, h("div", { class: "dialog" }, h("h2", { id: "dialog-title", text: title }), body)));
    /** @type {any} */
    let result = null;
    const leave = () => dialog.close(); // another view is shown: by the back button, say
    addEventListener("hashchange", leave);
    dialog.addEventListener("close", () => {
      removeEventListener("hashchange", leave);
      dialog.remove();
      resolve(result);
    });
    document.body.append(dialog);
    dialog.showModal();
    build(body, (given) => {
      result = given;
      dialog.close();
    });
  });
}
