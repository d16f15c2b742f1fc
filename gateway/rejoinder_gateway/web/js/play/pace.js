/** How fast the agent's replies are shown. */

import { remember, remembered } from "../store.js";
import { field, select } from "../ui.js";

const PACES = [
  { value: "0", text: "Instant" },
  { value: "350", text: "Quick" },
  { value: "900", text: "Calm" },
  { value: "1800", text: "Slow" },
];
const USUAL = "900";

/** Milliseconds for which an event is shown. */
export const pace = () => Number(remembered("pace", USUAL));

export function paceControl() {
  return field(
    "Agent's pace",
    select(PACES, remembered("pace", USUAL), (value) => remember("pace", value), { id: "pace" }),
  );
}

/** A pause that can be cut short. */
export class Pause {
  constructor() {
    this.skipped = false;
    /** @type {() => void} */
    this.end = () => {};
  }

  /** @param {number} milliseconds */
  async wait(milliseconds) {
    if (this.skipped || milliseconds <= 0) return;
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds, undefined);
      this.end = () => {
        clearTimeout(timer);
        resolve(undefined);
      };
    });
  }

  skip() {
    this.skipped = true;
    this.end();
  }
}
