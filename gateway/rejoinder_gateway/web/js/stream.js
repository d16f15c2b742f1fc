/**
 * News by an event stream that comes back by itself. While the gateway has no stream to give, the
 * page looks for news every few seconds instead, and asks for a stream again from time to time.
 */

import { lose } from "./connection.js";

const QUIET = 45_000; // milliseconds without even a ping: the connection is taken for dead
const AGAIN = 1_000; // before a stream that has ended is asked for again
const LOOK = 2_000; // between two looks while there is no stream
const LOOKS = 6; // before a stream that was refused is asked for again

/**
 * @param {{
 *   address: () => Promise<string>, handlers: Record<string, (data: any) => void>,
 *   look: () => Promise<void>, over?: () => boolean,
 * }} source its address, asked for before every attempt (a ticket is good for one); what to do with
 *   each event; how to look without it; whether there will be no more news
 * @returns {() => void} ends it
 */
export function follow({ address, handlers, look, over = () => false }) {
  let left = false;
  let close = () => {};
  const done = () => left || over();

  async function run() {
    while (!done()) {
      const end = await listen();
      if (end === "gone" || done()) return;
      const away = !(await reachable());
      if (away) await lose();
      const full = end === "refused" && !away;
      // What no stream tells, for as long as there is none.
      for (let looks = full ? LOOKS : 1; looks > 0 && !done(); looks -= 1) {
        if (!(await lookOnce())) return;
        await sleep(full ? LOOK : AGAIN);
      }
    }
  }

  /** Until the stream ends. @returns {Promise<"ended"|"refused"|"gone">} */
  async function listen() {
    let url = "";
    try {
      url = await address();
    } catch (error) {
      return missing(error) ? "gone" : "refused";
    }
    if (done()) return "gone";
    return new Promise((resolve) => {
      const source = new EventSource(url);
      let opened = false;
      let watchdog = 0;
      const finish = () => {
        clearTimeout(watchdog);
        source.close();
        resolve(opened ? "ended" : "refused");
      };
      const alive = () => {
        clearTimeout(watchdog);
        watchdog = setTimeout(finish, QUIET);
      };
      for (const [name, handle] of Object.entries(handlers)) {
        source.addEventListener(name, (event) => {
          alive();
          handle(JSON.parse(event.data));
          if (over()) finish();
        });
      }
      source.addEventListener("open", () => (opened = true));
      source.addEventListener("ping", alive);
      source.addEventListener("error", finish);
      close = finish;
      alive();
    });
  }

  /** @returns {Promise<boolean>} whether there is still something to look at */
  async function lookOnce() {
    try {
      await look();
    } catch (error) {
      return !missing(error); // else the next look may do better
    }
    return true;
  }

  run();
  return () => {
    left = true;
    close();
  };
}

/** @param {unknown} error */
const missing = (error) => /** @type {any} */ (error).status === 404;

/** @param {number} milliseconds */
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function reachable() {
  try {
    return (await fetch("/healthz", { cache: "no-store" })).ok;
  } catch {
    return false;
  }
}
