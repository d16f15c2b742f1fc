/** An event stream that comes back by itself. */

import { lose, lost } from "./connection.js";

const QUIET = 45_000; // milliseconds without even a ping: the connection is taken for dead
const AGAIN = 1_000;

/**
 * @param {() => Promise<string>} address asked for before every attempt (a ticket is good for one)
 * @param {Record<string, (data: any) => void>} handlers by event
 * @returns {() => void} ends it
 */
export function follow(address, handlers) {
  let ended = false;
  /** @type {EventSource|null} */
  let source = null;
  let watchdog = 0;
  let retry = 0;

  async function open() {
    if (ended) return;
    try {
      source = new EventSource(await address());
    } catch (error) {
      if (/** @type {any} */ (error).status !== 404) again(); // 404: there is nothing to follow
      return;
    }
    if (ended) {
      source.close();
      return;
    }
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (event) => {
        alive();
        handle(JSON.parse(event.data));
      });
    }
    source.addEventListener("ping", alive);
    source.addEventListener("error", again);
    alive();
  }

  function alive() {
    clearTimeout(watchdog);
    watchdog = setTimeout(again, QUIET);
  }

  async function again() {
    if (ended || retry) return;
    source?.close();
    clearTimeout(watchdog);
    if (!lost() && !(await reachable())) lose();
    if (lost()) await lose();
    retry = setTimeout(() => {
      retry = 0;
      open();
    }, AGAIN);
  }

  open();
  return () => {
    ended = true;
    clearTimeout(watchdog);
    clearTimeout(retry);
    source?.close();
  };
}

async function reachable() {
  try {
    return (await fetch("/healthz", { cache: "no-store" })).ok;
  } catch {
    return false;
  }
}
