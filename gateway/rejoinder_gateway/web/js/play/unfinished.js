/** The games of this browser that are not over: the gateway keeps them, and they can be gone on with. */

import { address } from "../router.js";
import { games } from "../store.js";
import { h, moment } from "../ui.js";

/**
 * @param {string} [present] the game at the table, which is not offered
 * @returns {HTMLElement|null}
 */
export function unfinishedGames(present) {
  const open = Object.entries(games()).filter(([id, { outcome }]) => !outcome && id !== present);
  if (!open.length) return null;
  return h(
    "section",
    { class: "unfinished", "aria-labelledby": "unfinished" },
    h("h3", { id: "unfinished", text: "Unfinished games" }),
    h("ul", {}, ...open.map(([id, game]) => row(id, game))),
  );
}

/** @param {string} id @param {import("../store.js").KnownGame} game */
function row(id, game) {
  const against = `${game.title} against ${game.opponent}`;
  return h(
    "li",
    { class: "unfinished__game" },
    h("div", {}, h("p", { text: against }), h("p", { class: "hint" }, "Begun ", moment(game.begun))),
    h("a", { class: "button button--small", href: address("play", id), "aria-label": `Continue ${against}`, text: "Continue" }),
  );
}
