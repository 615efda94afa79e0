// Functions that create and find elements: `h` creates an HTML element, `s` an SVG element.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

// Returns the data that the server has embedded in the page.
export const embeddedData = (id) => JSON.parse(document.getElementById(id)?.textContent || "null");

// Returns a function that calls `f` only after it has not been called for `ms` milliseconds.
export function debounce(f, ms = 200) {
  let timer;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => f(...args), ms);
  };
}

// Shows a message; screen readers announce it, too.
export function say(text, selector = "#say") {
  const place = $(selector);
  if (place && place.textContent !== text) place.textContent = text;
}
