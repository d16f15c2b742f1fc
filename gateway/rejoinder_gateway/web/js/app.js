/**
 * The page: a shell around four views.
 *
 *     app ─ router ─┬─ play/view ─┬─ play/deal_table | play/generic_table   the table
 *                   │             ├─ play/side                              history, advice, rules
 *                   │             └─ play/new_game
 *                   ├─ training ─── charts
 *                   ├─ policy
 *                   └─ replay ───── the same tables
 */

import { playView } from "./play/view.js";
import { policyView } from "./policy.js";
import { replayView } from "./replay.js";
import { startRouter } from "./router.js";
import { trainingView } from "./training.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
const toggle = /** @type {HTMLButtonElement} */ (document.getElementById("theme"));

toggle.addEventListener("click", () => {
  const theme = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("rejoinder.theme", theme);
  } catch {
    // for this visit only
  }
  themeChanged();
});
dark.addEventListener("change", themeChanged);
nameOtherTheme();

// The skip link must not be taken for a route.
document.querySelector(".skip")?.addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main")?.focus();
});

startRouter(/** @type {HTMLElement} */ (document.getElementById("main")), {
  play: { title: "Play", show: playView },
  training: { title: "Training", show: trainingView },
  policy: { title: "Policy", show: policyView },
  replay: { title: "Replay", show: replayView },
});

function isDark() {
  const { theme } = document.documentElement.dataset;
  return theme ? theme === "dark" : dark.matches;
}

function themeChanged() {
  nameOtherTheme();
  dispatchEvent(new Event("themechange")); // charts do not take part in the style sheet
}

function nameOtherTheme() {
  const other = document.getElementById("theme-other");
  if (other) other.textContent = isDark() ? "Light" : "Dark";
}
