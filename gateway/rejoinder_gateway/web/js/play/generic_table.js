/**
 * A table for any game, made from the player's view and his legal moves alone: the view's own
 * fields, one panel for each part of it, a button for each move.
 */

import { h, readable } from "../ui.js";

// Told otherwise: by the status line and by the end of the game.
const UNSAID = new Set(["player", "to_move", "over", "winner"]);
const SHORT = 4; // characters: shown large, like a card

/**
 * @param {{view: Record<string, any>, legal: {name: string, meanings: Record<string, string>}[], seat: number,
 *   headline: string, note: string, onMove: ((move: string) => void)|null, extra?: Node|null}} shown
 */
export function genericTable({ view, legal, seat, headline, note, onMove, extra }) {
  const mine = onMove !== null && legal.length > 0;
  return h(
    "div",
    { class: "table table--plain" },
    h(
      "section",
      { class: "centre", "aria-label": "What is going on" },
      h(
        "div",
        { class: `turn${mine ? " turn--mine" : ""}` },
        h(
          "div",
          { class: "turn__words" },
          h("p", { class: "turn__head", tabindex: "-1", "data-key": "status", text: headline }),
          h("p", { class: "turn__note", text: note }),
        ),
        extra ?? null,
      ),
    ),
    ...viewPanels(view, seat),
    onMove
      ? h(
          "section",
          { class: "moves", "aria-label": "Your moves" },
          h("h2", { text: "Your moves" }),
          mine
            ? h(
                "div",
                { class: "buttons" },
                ...legal.map(({ name }) =>
                  h("button", { class: "button button--main button--move", type: "button", "data-key": name, "data-move": name, onclick: () => onMove(name), text: readable(name) }),
                ),
              )
            : h("p", { class: "hint", text: "None now." }),
        )
      : null,
  );
}

/**
 * What a player sees, field by field.
 * @param {Record<string, any>} view
 * @param {number} seat whose "you" it is
 * @param {string} [title]
 */
export function viewPanels(view, seat, title = "Table") {
  const said = Object.entries(view).filter(([name, value]) => !UNSAID.has(name) && value !== null);
  const parts = said.filter(([, value]) => isPart(value));
  const own = said.filter(([, value]) => !isPart(value));
  return [panel(title, own, seat), ...parts.map(([name, part]) => panel(readable(name), Object.entries(part), seat))];
}

/** @param {string} title @param {[string, any][]} fields @param {number} seat */
function panel(title, fields, seat) {
  return h(
    "section",
    { class: "panel facts", "aria-label": title },
    h("h2", { text: title }),
    h(
      "dl",
      { class: "facts__list" },
      ...fields.map(([name, value]) =>
        h("div", {}, h("dt", { text: readable(name) }), h("dd", { class: isShort(value) ? "facts__card" : "", text: told(name, value, seat) })),
      ),
    ),
  );
}

/** A part of a view has parts or lists of its own; a pile of cards is numbers by name. @param {any} value */
const isPart = (value) => value !== null && typeof value === "object" && !Array.isArray(value) && Object.values(value).some((inner) => typeof inner !== "number");

/** @param {any} value */
const isShort = (value) => typeof value === "string" && value.length <= SHORT;

/** @param {string} name @param {any} value @param {number} seat @returns {string} */
function told(name, value, seat) {
  if (value === null) return "–";
  if (name.endsWith("player") && typeof value === "number") return value === seat ? "you" : "the agent";
  if (Array.isArray(value)) return value.map((inner) => told("", inner, seat)).join(", ") || "none";
  if (typeof value === "object") {
    return Object.entries(value).map(([key, inner]) => (inner === 1 ? key : `${told("", inner, seat)} × ${key}`)).join(", ") || "none";
  }
  if (typeof value === "boolean") return value ? "yes" : "no";
  return String(value);
}
