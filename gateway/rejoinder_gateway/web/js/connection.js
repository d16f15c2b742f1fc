/**
 * Whether the gateway can be reached. Whoever fails to reach it says so; from then on it is asked
 * for a sign of life until there is one, and whoever waits for that goes on.
 */

import { fill, h } from "./ui.js";

const FIRST_WAIT = 400; // milliseconds
const LONGEST_WAIT = 4000;
const SIGN = 5000; // within which a gateway that is there gives a sign of life

/** @type {Promise<void>|null} until the gateway is back */
let recovery = null;
const listeners = new Set();

export function lost() {
  return recovery !== null;
}

/** The gateway could not be reached. Resolves once it can be again. */
export function lose() {
  recovery ??= recover();
  return recovery;
}

/**
 * Be told when a lost connection is back.
 * @param {() => void} listener
 * @returns {() => void} stops it
 */
export function onRecovery(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

async function recover() {
  show(true);
  for (let wait = FIRST_WAIT; ; wait = Math.min(LONGEST_WAIT, wait * 1.5)) {
    await new Promise((resolve) => setTimeout(resolve, wait));
    if (await reachable()) break;
  }
  recovery = null;
  show(false);
  for (const listener of [...listeners]) listener();
}

/** Whether the gateway gives a sign of life. A connection on which nothing comes is none. */
export async function reachable() {
  try {
    return (await fetch("/healthz", { cache: "no-store", signal: AbortSignal.timeout(SIGN) })).ok;
  } catch {
    return false;
  }
}

/** @param {boolean} away */
function show(away) {
  const place = document.getElementById("connection");
  if (!place) return;
  document.documentElement.toggleAttribute("data-offline", away);
  fill(
    place,
    away &&
      h(
        "p",
        { class: "lost" },
        h("span", { text: "Connection to the gateway lost. Nothing is lost with it: the page goes on as soon as it is back." }),
      ),
  );
}
