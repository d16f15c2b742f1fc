/** Charts by Plotly, in the page's colours. Plotly is loaded when the first one is drawn. */

import { fill, h } from "./ui.js";

/** @type {Promise<any>|null} */
let plotly = null;

function library() {
  plotly ??= new Promise((resolve, reject) => {
    const script = h("script", { src: "/vendor/plotly.min.js" });
    script.addEventListener("load", () => resolve(/** @type {any} */ (globalThis).Plotly));
    script.addEventListener("error", () => {
      plotly = null; // the next chart tries again
      script.remove();
      reject(new Error("The charts' library could not be loaded."));
    });
    document.head.append(script);
  });
  return plotly;
}

/** Colours that can be told apart, the accent first; lines differ in dashes too. */
const SERIES = [
  light("#2c4fc4", "#93abff"),
  light("#b5336c", "#f29dc0"),
  light("#1f7048", "#77cda1"),
  light("#8b5a33", "#dba97c"),
  light("#6a3fb0", "#c3a4ff"),
  light("#0f7285", "#6fd0e3"),
];
/** Plotly's names, and what they are in SVG. @type {Record<string, string>} */
const DASHES = { solid: "none", dash: "6 4", dot: "2 3", dashdot: "6 3 2 3", longdash: "10 4", longdashdot: "10 3 2 3" };

/**
 * A figure with a heading and a chart.
 * @param {string} title
 * @param {string} about what it shows, in a sentence
 */
export function figure(title, about) {
  const place = h("div", { class: "chart", role: "img", "aria-label": `${title}. ${about}` });
  const summary = h("p", { class: "chart__summary" });
  const heading = h("h2", { text: title });
  const hint = h("p", { class: "hint", text: about });
  const legend = h("ul", { class: "legend", "aria-hidden": "true" });
  const element = h("figure", { class: "panel figure" }, h("figcaption", {}, heading, hint), place, legend, summary);
  /** @type {{traces: (colours: Colours) => any[], layout: any}|null} */
  let last = null;
  let painting = false;
  let stale = false; // there is something newer than what is being painted

  async function paint() {
    stale = true;
    takePlace();
    if (painting) return;
    painting = true;
    try {
      const Plotly = await library();
      while (stale && last && place.isConnected) {
        stale = false;
        await Plotly.react(place, last.traces(colours()), layout(last.layout), CONFIG);
      }
    } catch (error) {
      place.textContent = error instanceof Error ? error.message : String(error);
    }
    painting = false;
  }

  /** All that it will need, before there is a library to draw with: nothing below moves then. */
  function takePlace() {
    if (!last) return;
    place.style.minHeight = `${layout(last.layout).height}px`;
    fill(legend, ...legendOf(last.traces(colours())));
  }

  return {
    element,
    /** @param {string} newTitle @param {string} newAbout */
    name(newTitle, newAbout) {
      heading.textContent = newTitle;
      hint.textContent = newAbout;
      place.setAttribute("aria-label", `${newTitle}. ${newAbout}`);
    },
    /**
     * @param {(colours: Colours) => any[]} traces
     * @param {any} given more of the layout
     * @param {string} text the newest values in words
     */
    draw(traces, given, text) {
      last = { traces, layout: given };
      summary.textContent = text;
      paint();
    },
    /** Draw again, in the theme's colours of now. */
    paint,
  };
}

/** @typedef {{line: (k: number) => {color: string, dash: string, width: number}, band: (k: number) => string, ink: string}} Colours */

const CONFIG = { displayModeBar: false, responsive: true, doubleClick: "reset" };

/** @returns {Colours} */
function colours() {
  const dashes = Object.keys(DASHES);
  return {
    line: (k) => ({ color: resolved(SERIES[k % SERIES.length]), dash: dashes[(k + Math.floor(k / SERIES.length)) % dashes.length], width: 2 }),
    band: (k) => resolved(`color-mix(in srgb, ${SERIES[k % SERIES.length]} 18%, transparent)`),
    ink: resolved("var(--ink)"),
  };
}

/** The lines by name, where there are several. @param {any[]} traces */
function legendOf(traces) {
  const named = traces.filter(({ name }) => name);
  return named.length > 1 ? named.map(({ name, line }) => h("li", {}, sample(line), name)) : [];
}

/** A piece of a line. @param {{color: string, dash: string, width: number}} line */
function sample({ color, dash, width }) {
  const drawing = document.createElementNS(SVG, "svg");
  const line = document.createElementNS(SVG, "line");
  for (const [name, value] of Object.entries({ width: 28, height: 8 })) drawing.setAttribute(name, String(value));
  for (const [name, value] of Object.entries({ x1: 0, x2: 28, y1: 4, y2: 4, stroke: color, "stroke-width": width, "stroke-dasharray": DASHES[dash] })) line.setAttribute(name, String(value));
  drawing.append(line);
  return drawing;
}
const SVG = "http://www.w3.org/2000/svg";

/** @param {any} given */
function layout(given) {
  const ink = resolved("var(--ink-2)");
  const line = resolved("var(--line)");
  const axis = { gridcolor: line, linecolor: line, zerolinecolor: line, tickfont: { size: 12 }, automargin: true };
  return {
    height: 260,
    margin: { l: 48, r: 12, t: 8, b: 36 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, color: ink, size: 12 },
    showlegend: false, // `legendOf` makes one that wraps on a narrow screen
    hovermode: "x unified",
    hoverlabel: { bgcolor: resolved("var(--surface)"), bordercolor: line, font: { color: resolved("var(--ink)") } },
    ...given,
    xaxis: { ...axis, ...given.xaxis },
    yaxis: { ...axis, ...given.yaxis },
  };
}

/**
 * A colour of the style sheet as Plotly understands it.
 * @param {string} colour
 */
function resolved(colour) {
  const context = /** @type {CanvasRenderingContext2D} */ (probe.getContext("2d", { willReadFrequently: true }));
  const element = h("span", { hidden: true, style: { color: colour } });
  document.body.append(element);
  context.clearRect(0, 0, 1, 1);
  context.fillStyle = getComputedStyle(element).color;
  context.fillRect(0, 0, 1, 1);
  element.remove();
  const [r, g, b, alpha] = context.getImageData(0, 0, 1, 1).data;
  return `rgba(${r},${g},${b},${(alpha / 255).toFixed(3)})`;
}
const probe = document.createElement("canvas");
probe.width = probe.height = 1;

/** @param {string} bright @param {string} dark */
function light(bright, dark) {
  return `light-dark(${bright}, ${dark})`;
}
