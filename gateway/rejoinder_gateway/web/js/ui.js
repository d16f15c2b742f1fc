/** Elements, and the pieces that every view uses. */

/**
 * An element. Properties: `class`, `text`, `style` (custom properties by name), `onclick` and the
 * like (functions), and attributes; null, undefined and false leave one out.
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {...(Node|string|null|undefined|false)} children
 * @returns {HTMLElement}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") element.textContent = String(value);
    else if (name === "style") for (const [key, given] of Object.entries(value)) element.style.setProperty(key, String(given));
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/**
 * Replace what is in an element without losing the keyboard's place: the element with the same
 * `data-key` (or id) as the focused one gets the focus.
 * @param {HTMLElement} parent
 * @param {...(Node|string|null|false)} children
 */
export function fill(parent, ...children) {
  const focused = parent.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement) : null;
  const key = focused?.dataset.key;
  const id = focused?.id ?? "";
  parent.replaceChildren(...children.filter((child) => child !== null && child !== false));
  const again = key ? parent.querySelector(`[data-key="${CSS.escape(key)}"]`) : document.getElementById(id);
  if (again instanceof HTMLElement) again.focus({ preventScroll: true });
}

/** @param {string} what */
export function loading(what) {
  return h("div", { class: "state", role: "status" }, h("span", { class: "spinner" }), h("p", { text: `Loading ${what}…` }));
}

/**
 * @param {string} title
 * @param {string} text
 * @param {...Node} actions
 */
export function empty(title, text, ...actions) {
  return h("div", { class: "state" }, h("h2", { text: title }), h("p", { text }), ...actions);
}

/**
 * @param {unknown} error
 * @param {() => void} [retry]
 */
export function failure(error, retry) {
  const { title, detail } = words(error);
  return h(
    "div",
    { class: "state state--error", role: "alert" },
    h("h2", { text: title }),
    h("p", { text: detail }),
    retry ? h("button", { class: "button", type: "button", onclick: retry, text: "Try again" }) : null,
  );
}

/**
 * What went wrong, in words.
 * @param {unknown} error
 * @returns {{title: string, detail: string}}
 */
export function words(error) {
  const given = /** @type {{title?: string, message?: string}} */ (error ?? {});
  return { title: given.title ?? "Something went wrong", detail: given.message ?? String(error) };
}

/**
 * Shares as bars, likeliest first.
 * @param {{name: string, share: number, told?: string, note?: string|null}[]} rows `told` in place of the share
 */
export function bars(rows) {
  const sorted = [...rows].sort((a, b) => b.share - a.share);
  return h(
    "ul",
    { class: "bars" },
    ...sorted.map(({ name, share, told, note }) =>
      h(
        "li",
        { class: "bars__row" },
        h("span", { text: name }),
        h("span", { class: "bars__value", text: told ?? percent(share) }),
        bar(share),
        note ? h("span", { class: "bars__note", text: note }) : null,
      ),
    ),
  );
}

/**
 * What an agent weighed: how likely each action was or, where it thought ahead, what each move is worth.
 * @param {{search: number, actions: {name: string, probability: number, move: string, value: number|null}[]}} decision
 * @param {(action: any) => string|null} note
 */
export function weighed({ search, actions }, note) {
  if (!search) return bars(actions.map((a) => ({ name: readable(a.name), share: a.probability, note: note(a) })));
  const values = actions.map((a) => a.value ?? 0);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return bars(actions.map((a, k) => ({ name: readable(a.name), share: high > low ? (values[k] - low) / (high - low) : 1, told: signed(values[k], 2), note: note(a) })));
}

/** @param {number} share */
export function bar(share) {
  return h("span", { class: "bar", "aria-hidden": "true", style: { "--share": Math.max(0, Math.min(1, share)) } }, h("i"));
}

/**
 * A labelled control.
 * @param {string} label
 * @param {HTMLElement} control
 * @param {string} [hint]
 */
export function field(label, control, hint) {
  control.id ||= `field-${(fieldCount += 1)}`;
  return h("div", { class: "field" }, h("label", { for: control.id, text: label }), control, hint ? h("span", { class: "hint", text: hint }) : null);
}
let fieldCount = 0;

/**
 * A select; `chosen` need not be among the options.
 * @param {{value: string, text: string}[]} options
 * @param {string} chosen
 * @param {(value: string) => void} onChange
 * @param {Record<string, any>} [properties]
 */
export function select(options, chosen, onChange, properties = {}) {
  const element = /** @type {HTMLSelectElement} */ (
    h(
      "select",
      { ...properties, onchange: () => onChange(element.value) },
      ...options.map(({ value, text }) => h("option", { value, text, selected: value === chosen })),
    )
  );
  return element;
}

/**
 * Tell a screen reader.
 * @param {string} text
 */
export function announce(text) {
  const region = document.getElementById("announcer");
  if (!region) return;
  region.append(h("p", { text }));
  while (region.children.length > 6) region.firstElementChild?.remove();
}

/** `0.123` is `12 %`; only nothing is 0 %, and all 100 %. @param {number} share */
export function percent(share) {
  const value = share * 100;
  return `${value > 0 && value < 1 ? "<1" : value > 99 && value < 100 ? ">99" : Math.round(value)}\u00a0%`;
}

/** @param {number|null|undefined} value @param {number} [digits] */
export function number(value, digits = 0) {
  if (value === null || value === undefined) return "–";
  return value.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: digits }).replace("-", "−");
}

/** `+1`, `−1`. @param {number} value @param {number} [digits] */
export function signed(value, digits = 0) {
  return `${value > 0 ? "+" : ""}${number(value, digits)}`;
}

/** `90 s`, `12 min`, `3.5 h`. @param {number|null|undefined} seconds */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${number(seconds / 3600, 1)} h`;
}

/** `Nov 3, 2026, 2:05 PM`. @param {string} iso */
export function moment(iso) {
  return h("time", { datetime: iso, text: new Date(iso).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" }) });
}

/** @param {number} count @param {string} what */
export function count(count, what) {
  return `${number(count)} ${what}${count === 1 ? "" : "s"}`;
}

/** A game's title without what it says in brackets. @param {string} title */
export const shortTitle = (title) => title.replace(/ \(.*\)$/, "");

/** `START_NEW_PROPERTY_SET` is `Start new property set`. @param {string} name */
export function readable(name) {
  const plain = name.replaceAll("_", " ").toLowerCase();
  return plain.charAt(0).toUpperCase() + plain.slice(1);
}
