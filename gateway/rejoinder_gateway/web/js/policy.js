/**
 * Policy: search and browse the infosets of a snapshot, look at one, and compare it with another
 * snapshot or another run.
 *
 * @typedef {{identifier: string, key: string, description: Record<string, any>, visits: number, reach: number,
 *   actions: {name: string, latest: number, average: number, regret: number}[], snapshot: number}} Infoset
 */

import { infoset as readInfoset, infosets as readInfosets, runs as readRuns } from "./api.js";
import { onRecovery } from "./connection.js";
import { describe, examples } from "./infoset_words.js";
import { comparison, infosetDetail } from "./policy_detail.js";
import { address, noteInAddress } from "./router.js";
import { announce, count, empty, failure, field, fill, h, loading, number, select } from "./ui.js";

const PAGE = 25;
const TYPING = 250; // milliseconds
const SORTS = [
  { value: "visits", text: "Most updates" },
  { value: "regret", text: "Largest regret" },
  { value: "identifier", text: "Identifier" },
];

/** @type {import("./router.js").View} */
export function policyView(main, route) {
  let left = false;
  /** @type {Browser|null} */
  let browser = null;

  async function begin() {
    fill(main, loading("the runs"));
    try {
      const all = await readRuns();
      if (left) return;
      const found = all.filter((/** @type {any} */ run) => run.snapshots.length);
      const wanted = route.argument ?? route.query.get("run");
      if (wanted && !found.some((/** @type {any} */ run) => run.name === wanted)) return fill(main, notFound(wanted, all));
      if (!found.length) return fill(main, empty("No policy yet", "A run shows its policy here once it has written its first checkpoint.", h("code", { text: "rejoinder train paper" })));
      browser = new Browser(main, found, wanted ?? found[0].name, route.query);
      browser.begin();
    } catch (error) {
      if (!left) fill(main, failure(error, begin));
    }
  }

  begin();
  const stop = onRecovery(() => browser?.list());
  return () => {
    left = true;
    stop();
    browser?.leave();
  };
}

/** The state of the view is the address; this draws it. */
class Browser {
  /**
   * @param {HTMLElement} main
   * @param {any[]} runs
   * @param {string} name of the run to show
   * @param {URLSearchParams} query
   */
  constructor(main, runs, name, query) {
    this.main = main;
    this.runs = runs;
    this.run = runs.find((run) => run.name === name);
    this.chosen = {
      snapshot: query.get("snapshot") ?? "",
      search: query.get("search") ?? "",
      min_visits: query.get("min") ?? "",
      sort: query.get("sort") ?? "visits",
      offset: 0,
    };
    this.infoset = query.get("infoset");
    const other = this.comparable().find((run) => run.name === query.get("run2"));
    this.other = { run: other?.name ?? "", snapshot: query.get("snapshot2") ?? "" };
    this.search = /** @type {HTMLInputElement} */ (h("input", { type: "search", value: this.chosen.search, oninput: () => this.type({ search: this.search.value }) }));
    this.results = h("section", { class: "infosets", "aria-label": "Infosets" });
    this.detail = h("section", { class: "detail", "aria-label": "The infoset" });
    this.asked = 0; // lists asked for; only the last answer counts
    this.looked = 0; // the same for details
    this.typing = 0;
  }

  begin() {
    fill(
      this.main,
      h("div", { class: "page-head" }, h("div", {}, h("h1", { text: "Policy" }), h("p", { class: "lede", text: "What a run has learnt, infoset by infoset: its latest and average policy, and the regrets behind them." }))),
      this.controls(),
      h("div", { class: "browse" }, this.results, this.detail),
    );
    this.list();
    this.look();
  }

  leave() {
    clearTimeout(this.typing);
    this.asked += 1;
    this.looked += 1;
  }

  controls() {
    const [newest, ...older] = snapshotOptions(this.run); // the newest is what it is when it is asked for
    const least = /** @type {HTMLInputElement} */ (h("input", { type: "number", min: 0, step: 1, value: this.chosen.min_visits, placeholder: "0", oninput: () => this.type({ min_visits: least.value }) }));
    return h(
      "div",
      { class: "panel controls", role: "search", "aria-label": "Infosets" },
      field("Run", select(this.runs.map(({ name }) => ({ value: name, text: name })), this.run.name, (name) => (location.hash = address("policy", name)))),
      field("Snapshot", select([{ ...newest, value: "" }, ...older], this.chosen.snapshot, (snapshot) => this.change({ snapshot }), { id: "snapshot" })),
      h("div", { class: "controls__wide" }, field("Search", this.search)),
      field("Updates, at least", least),
      field("Order", select(SORTS, this.chosen.sort, (sort) => this.change({ sort }))),
    );
  }

  /** @param {Partial<Browser["chosen"]>} change */
  type(change) {
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.change(change), TYPING);
  }

  /** @param {Partial<Browser["chosen"]>} change */
  change(change) {
    Object.assign(this.chosen, { offset: 0 }, change);
    noteInAddress({ snapshot: this.chosen.snapshot, search: this.chosen.search, min: this.chosen.min_visits, sort: this.chosen.sort });
    this.list();
    if ("snapshot" in change) this.look();
  }

  async list() {
    const asked = (this.asked += 1);
    if (!this.results.childElementCount) fill(this.results, loading("infosets"));
    const { sort } = this.chosen;
    const search = this.chosen.search.trim().replaceAll(" ", "_"); // as actions and fields are named
    try {
      const page = await readInfosets(this.run.name, { ...this.chosen, search, order: sort === "identifier" ? "asc" : "desc", limit: PAGE });
      if (asked !== this.asked) return;
      announce(`${count(page.total, "infoset")} found`);
      if (!page.total) return this.nothing();
      fill(this.results, this.page(page));
      this.search.placeholder ||= examples(page.infosets[0]);
      if (!this.infoset) this.choose(page.infosets[0].identifier);
    } catch (error) {
      if (asked === this.asked) fill(this.results, failure(error, () => this.list()));
    }
  }

  nothing() {
    this.infoset = null;
    this.looked += 1; // a look that is under way is for nothing
    noteInAddress({ infoset: null });
    fill(this.results, empty("Nothing matches", `Search for an action, a field with its value, or a part of an identifier${this.search.placeholder ? `, like: ${this.search.placeholder}` : ""}.`));
    fill(this.detail);
  }

  /** @param {{total: number, offset: number, infosets: Infoset[]}} page */
  page({ total, offset, infosets }) {
    /** @param {number} to */
    const turn = (to) => this.change({ offset: to });
    return h(
      "div",
      { class: "infosets__page" },
      h("p", { class: "hint", text: `${number(offset + 1)}–${number(offset + infosets.length)} of ${count(total, "infoset")}` }),
      h("ol", { class: "infosets__list" }, ...infosets.map((infoset) => this.row(infoset))),
      h(
        "div",
        { class: "buttons" },
        h("button", { class: "button button--small", type: "button", "data-key": "previous", disabled: offset === 0, onclick: () => turn(Math.max(0, offset - PAGE)), text: "Previous page" }),
        h("button", { class: "button button--small", type: "button", "data-key": "next", disabled: offset + infosets.length >= total, onclick: () => turn(offset + PAGE), text: "Next page" }),
      ),
    );
  }

  /** @param {Infoset} infoset */
  row(infoset) {
    const { title, facts, text } = describe(infoset);
    return h(
      "li",
      {},
      h(
        "button",
        { class: "infoset", type: "button", "data-key": infoset.identifier, "data-infoset": infoset.identifier, "aria-current": infoset.identifier === this.infoset ? "true" : null, onclick: () => this.choose(infoset.identifier) },
        h("span", { class: "infoset__title", text: title }),
        h("span", { class: "infoset__visits", text: count(infoset.visits, "update") }),
        facts.length ? h("span", { class: "infoset__facts", text: facts.map(({ name, value }) => `${name}: ${value}`).join(" · ") }) : null,
        h("span", { class: "infoset__text", text }),
        h("span", { class: "shares", "aria-hidden": "true" }, ...infoset.actions.map(({ average }, k) => h("i", { style: { "--share": average, "--tone": k } }))),
      ),
    );
  }

  /** @param {string} identifier */
  choose(identifier) {
    this.infoset = identifier;
    noteInAddress({ infoset: identifier });
    for (const row of this.results.querySelectorAll("[data-infoset]")) {
      if (row.getAttribute("data-infoset") === identifier) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
    this.look();
  }

  /** @param {Partial<Browser["other"]>} change */
  compare(change) {
    Object.assign(this.other, change);
    noteInAddress({ run2: this.other.run, snapshot2: this.other.snapshot });
    this.look();
  }

  async look() {
    if (!this.infoset) return;
    const looked = (this.looked += 1);
    const snapshot = this.other.snapshot || this.usualOther();
    if (!this.detail.childElementCount) fill(this.detail, loading("the infoset"));
    try {
      const [one, two] = await Promise.all([
        readInfoset(this.run.name, this.infoset, { snapshot: this.chosen.snapshot }),
        this.other.run ? readInfoset(this.other.run, this.infoset, { snapshot }) : null,
      ]);
      if (looked !== this.looked) return;
      const shown = this.other.run ? comparison(...this.inOrder(one, { infoset: two, snapshot })) : one ? infosetDetail(one) : empty("Not met", "This snapshot does not know the infoset yet. Another one may.");
      fill(this.detail, h("div", { class: "panel detail__panel" }, this.compareControls(snapshot), shown));
    } catch (error) {
      if (looked === this.looked) fill(this.detail, failure(error, () => this.look()));
    }
  }

  /**
   * Both sides with their names; of one run the earlier snapshot is on the left.
   * @param {Infoset|null} one
   * @param {{infoset: Infoset|null, snapshot: string}} other
   * @returns {[{name: string, infoset: Infoset|null}, {name: string, infoset: Infoset|null}]}
   */
  inOrder(one, other) {
    const games = (/** @type {any} */ run, /** @type {string} */ snapshot) => Number(snapshot || run.snapshots.at(-1));
    const mine = games(this.run, this.chosen.snapshot);
    const theirs = games(this.runs.find(({ name }) => name === this.other.run), other.snapshot);
    const left = { name: `${this.run.name}, ${count(mine, "game")}`, infoset: one };
    const right = { name: `${this.other.run}, ${count(theirs, "game")}`, infoset: other.infoset };
    return this.other.run === this.run.name && theirs < mine ? [right, left] : [left, right];
  }

  /** The runs that have the same infosets. */
  comparable() {
    const { name: own, game, abstraction } = this.run;
    return this.runs.filter((run) => run.game === game && run.abstraction === abstraction && (run.name !== own || run.snapshots.length > 1));
  }

  /** The snapshot to compare with if none was chosen: another one of this run, or the newest of another. */
  usualOther() {
    const other = this.comparable().find(({ name }) => name === this.other.run);
    if (!other) return "";
    const [first, newest] = [other.snapshots[0], other.snapshots.at(-1)];
    return String(other.name === this.run.name && first !== Number(this.chosen.snapshot) ? first : newest);
  }

  /** @param {string} snapshot of the other run */
  compareControls(snapshot) {
    const others = this.comparable();
    const other = others.find(({ name }) => name === this.other.run);
    return h(
      "div",
      { class: "controls controls--compare" },
      field("Compare with", select([{ value: "", text: "Nothing" }, ...others.map(({ name }) => ({ value: name, text: name }))], this.other.run, (run) => this.compare({ run, snapshot: "" }), { id: "compare-run" })),
      other ? field("Its snapshot", select(snapshotOptions(other), snapshot, (chosen) => this.compare({ snapshot: chosen }), { id: "compare-snapshot" })) : null,
    );
  }
}

/** @param {string} name @param {any[]} runs */
function notFound(name, runs) {
  const waits = runs.some((run) => run.name === name);
  return empty(
    waits ? "No policy yet" : "No such run",
    waits ? `The run ${name} has not written a checkpoint yet.` : `There is no run called ${name} here.`,
    h("a", { class: "button", href: "#/policy", text: "All policies" }),
  );
}

/** Newest first. @param {any} run */
function snapshotOptions({ snapshots }) {
  return snapshots.toReversed().map((/** @type {number} */ games, /** @type {number} */ k) => ({ value: String(games), text: k ? count(games, "game") : `Newest (${number(games)})` }));
}
