/**
 * The response phases of a run's agent: analysed when somebody asks, since it takes the gateway some
 * seconds, and again when there is a newer snapshot.
 */

import { responses as readResponses } from "./api.js";
import { analysisFigures } from "./responses_figures.js";
import { announce, count, failure, fill, h, loading } from "./ui.js";

/** @param {string} name of the run */
export function responsesPanel(name) {
  let left = false;
  let busy = false;
  /** @type {number|null} games of the snapshot that is shown */
  let shown = null;
  /** @type {number|null} */
  let newest = null;
  const button = /** @type {HTMLButtonElement} */ (h("button", { class: "button", type: "button", id: "analyse", onclick: analyse }));
  const note = h("p", { class: "hint" });
  const body = h("div", { class: "responses__body", tabindex: "-1" });
  const element = h(
    "section",
    { class: "panel responses", "aria-labelledby": "responses-title" },
    h(
      "header",
      { class: "responses__head" },
      h("div", {}, h("h2", { id: "responses-title", text: "Response phases" }), note),
      button,
    ),
    body,
  );
  offer();

  /** What can be asked for now. */
  function offer() {
    const stale = shown !== null && newest !== null && newest > shown;
    note.textContent = noteOf(shown, newest, stale);
    button.textContent = stale ? "Analyse the newest snapshot" : "Analyse the response phases";
    button.hidden = shown !== null && !stale;
    button.setAttribute("aria-disabled", String(busy || newest === null)); // it keeps the keyboard's place
  }

  async function analyse() {
    if (busy || newest === null) return;
    busy = true;
    offer();
    if (shown === null) fill(body, loading("the analysis, which takes some seconds"));
    try {
      const analysis = await readResponses(name);
      if (left) return;
      const asked = document.activeElement === button || document.activeElement === document.body;
      shown = analysis.snapshot;
      fill(body, analysisFigures(analysis));
      announce("The response phases are analysed.");
      if (asked) body.focus({ preventScroll: true });
    } catch (error) {
      if (!left) fill(body, failure(error, analyse));
      shown = null;
    }
    busy = false;
    if (!left) offer();
  }

  return {
    element,
    /** @param {any} run */
    update(run) {
      newest = run.snapshots.at(-1) ?? null;
      offer();
    },
    end() {
      left = true;
    },
  };
}

/** @param {number|null} shown @param {number|null} newest @param {boolean} stale */
function noteOf(shown, newest, stale) {
  if (stale) return `This is the snapshot of ${count(shown ?? 0, "game")}; there is one of ${count(newest ?? 0, "game")} now.`;
  if (shown !== null) return "What the agent does when rent is charged, and what that is worth.";
  if (newest === null) return "They can be analysed once the run has written a checkpoint.";
  return "What the agent does when rent is charged, and what that is worth. It plays some thousand games for it.";
}
