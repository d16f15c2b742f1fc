/**
 * One infoset, or two snapshots of it side by side.
 *
 * @typedef {import("./policy.js").Infoset} Infoset
 */

import { describe } from "./infoset_words.js";
import { bar, count, h, number, percent, readable, signed } from "./ui.js";

/** @param {Infoset} infoset */
export function infosetDetail(infoset) {
  return h("div", { class: "detail__body" }, head(infoset), standing(infoset), policyTable(infoset), aboutReach());
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
    aboutReach(),
  );
}

/** @param {Infoset} infoset */
function head(infoset) {
  const { title, facts } = describe(infoset);
  return h(
    "header",
    { class: "detail__head" },
    h("h2", { text: title }),
    h("code", { text: infoset.identifier }),
    facts.length ? h("dl", { class: "pairs" }, ...facts.map(({ name, value }) => h("div", {}, h("dt", { text: name }), h("dd", { text: value })))) : null,
  );
}

/** @param {Infoset} infoset */
function standing({ visits, reach, snapshot }) {
  return h("p", { class: "hint", text: `${count(visits, "update")} · reach ${reach.toPrecision(3)} · snapshot of ${count(snapshot, "game")}` });
}

function aboutReach() {
  return h("p", { class: "hint", text: "Reach: the probability that chance and the other player's moves lead here, summed over the updates. The maximum expected regret weights by it." });
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
          measure("Regret", signed(regret, 3), h("span", { class: `signed signed--${regret < 0 ? "below" : "above"}`, "aria-hidden": "true", style: { "--share": Math.abs(regret) / largest } }, h("i"))),
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
    h("h3", { text: "Change of the average policy, from left to right" }),
    h("ul", {}, ...rows.map(({ name, change }) => h("li", {}, h("span", { text: readable(name) }), h("strong", { text: `${change > 0.0005 ? "+" : change < -0.0005 ? "−" : "±"}${number(Math.abs(change * 100), 1)} points` })))),
  );
}
