/**
 * One infoset, or two snapshots of it side by side.
 *
 * @typedef {import("./policy.js").Infoset} Infoset
 */

import { bar, count, h, number, percent, readable } from "./ui.js";

/**
 * An infoset in words: where, and what can be done there.
 * @param {Infoset} infoset
 */
export function describe({ description, actions, key }) {
  const known = typeof description.player === "number";
  const where = known ? `Seat ${description.player}${typeof description.streak_index === "number" ? `, play ${description.streak_index + 1}` : ""}` : `Key ${key}`;
  return { title: where, text: actions.map(({ name }) => readable(name)).join(" · ") };
}

/** @param {Infoset} infoset */
export function infosetDetail(infoset) {
  return h("div", { class: "detail__body" }, head(infoset), standing(infoset), policyTable(infoset));
}

/**
 * @param {{name: string, infoset: Infoset|null}} one
 * @param {{name: string, infoset: Infoset|null}} two
 */
export function comparison(one, two) {
  const either = one.infoset ?? two.infoset;
  if (!either) return h("p", { class: "hint", text: "Neither snapshot knows this infoset." });
  return h(
    "div",
    { class: "detail__body" },
    head(either),
    h("div", { class: "pair" }, ...[one, two].map(({ name, infoset }) => h("section", { class: "pair__side" }, h("h3", { text: name }), infoset ? standing(infoset) : null, infoset ? policyTable(infoset) : h("p", { class: "hint", text: "Not met yet." })))),
    one.infoset && two.infoset ? differences(one.infoset, two.infoset) : null,
  );
}

/** @param {Infoset} infoset */
function head(infoset) {
  const { title } = describe(infoset);
  const told = Object.entries(infoset.description).filter(([name, value]) => !["actions", "player", "streak_index", "key"].includes(name) && says(value));
  return h(
    "header",
    { class: "detail__head" },
    h("h2", { text: title }),
    h("code", { text: infoset.identifier }),
    told.length ? h("dl", { class: "pairs" }, ...told.map(([name, value]) => h("div", {}, h("dt", { text: readable(name) }), h("dd", { text: Array.isArray(value) ? value.join(", ") : String(value) })))) : null,
  );
}

/** @param {Infoset} infoset */
function standing({ visits, reach, snapshot }) {
  return h("p", { class: "hint", text: `${count(visits, "update")} · reach ${reach.toPrecision(3)} · snapshot of ${count(snapshot, "game")}` });
}

/** @param {Infoset} infoset */
function policyTable({ actions }) {
  const largest = Math.max(1e-9, ...actions.map(({ regret }) => Math.abs(regret)));
  return h(
    "ul",
    { class: "policy" },
    ...actions.map(({ name, latest, average, regret }) =>
      h(
        "li",
        { class: "policy__action" },
        h("h3", { text: readable(name) }),
        h(
          "dl",
          { class: "policy__bars" },
          measure("Latest", percent(latest), bar(latest)),
          measure("Average", percent(average), bar(average)),
          measure("Regret", signed(regret), h("span", { class: `signed signed--${regret < 0 ? "below" : "above"}`, "aria-hidden": "true", style: { "--share": Math.abs(regret) / largest } }, h("i"))),
        ),
      ),
    ),
  );
}

/** @param {string} term @param {string} value @param {Node} drawn */
function measure(term, value, drawn) {
  return h("div", {}, h("dt", { text: term }), h("dd", {}, drawn, h("span", { text: value })));
}

/** @param {Infoset} one @param {Infoset} two */
function differences(one, two) {
  const others = new Map(two.actions.map((action) => [action.name, action]));
  const rows = one.actions.map(({ name, average }) => ({ name, change: (others.get(name)?.average ?? 0) - average }));
  return h(
    "section",
    { class: "detail__differences" },
    h("h3", { text: "Average policy, from left to right" }),
    h("ul", {}, ...rows.map(({ name, change }) => h("li", {}, h("span", { text: readable(name) }), h("strong", { text: `${change > 0.0005 ? "+" : change < -0.0005 ? "−" : "±"}${number(Math.abs(change * 100), 1)} points` })))),
  );
}

/** @param {number} value */
const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}`;

/** Whether a field says anything: zeros are what an abstraction leaves out. @param {any} value */
const says = (value) => (Array.isArray(value) ? value.some(Boolean) : Boolean(value));
