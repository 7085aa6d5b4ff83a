// The only module that creates elements. Text becomes text nodes, never markup.

const SVG = "http://www.w3.org/2000/svg";
const GLYPHS = {
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10ZM11 11l3.5 3.5",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  fit: "M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4",
  link: "M6.500 9.500l3-3M7 4.500l1.500-1.500a3 3 0 0 1 4.500 4.500L11.500 9M9 11.500 7.500 13A3 3 0 0 1 3 8.500L4.500 7",
  theme: "M8 2a6 6 0 1 0 0 12ZM8 2a6 6 0 0 1 0 12",
  help: "M5.8 6a2.3 2.3 0 1 1 3.4 2c-.8.4-1.2.9-1.2 1.8M8 12.4v.1M8 15A7 7 0 1 0 8 1a7 7 0 0 0 0 14Z",
  areas: "M3 9c0-4 3-6 6-5s5 3 4 6-4 4-6 3-4-1-4-4Z",
  key: "M10 6a3 3 0 1 0-2.8 3M8 8l6 6M11.500 11.500l1.500-1.500",
  back: "M10 3 5 8l5 5",
};

export function element(tag, properties = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  return fill(document.createElement(name), classes, properties, children);
}

export function drawing(tag, properties = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  return fill(document.createElementNS(SVG, name), classes, properties, children);
}

function fill(node, classes, properties, children) {
  if (classes.length) node.classList.add(...classes);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, one] of Object.entries(value)) node.style.setProperty(key, one);
    else if (name === "data") Object.assign(node.dataset, value);
    else if (name in node && !(node instanceof SVGElement) && name !== "list" && name !== "form") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  append(node, children);
  return node;
}

export function append(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
  return node;
}

export function replace(node, ...children) {
  node.replaceChildren();
  return append(node, children);
}

export function glyph(name) {
  return drawing("svg.glyph", { viewBox: "0 0 16 16", "aria-hidden": "true" }, drawing("path", { d: GLYPHS[name] }));
}

export function button(label, onclick, properties = {}, kind = "") {
  return element(`button${kind}`, { type: "button", onclick, ...properties }, label);
}

export function iconButton(name, label, onclick, properties = {}) {
  return button(glyph(name), onclick, { title: label, "aria-label": label, ...properties }, ".icon");
}

// Return an input with a label above it.
export function field(label, input) {
  return element("label.field", {}, element("span.soft.small", {}, label), input);
}

export function announce(text) {
  document.getElementById("announcer").textContent = text;
}

let shown = null;

export function toast(text, action = null) {
  shown?.remove();
  const box = element("div.toasts", { role: "status", "aria-live": "off" }, element("div.toast", {}, element("span.grow", {}, text),
    action && button(action.label, () => { box.remove(); action.run(); })));
  shown = box;
  (document.querySelector("dialog[open]") ?? document.body).append(box); // a dialog covers the rest of the page
  announce(text);
  setTimeout(() => box.remove(), action ? 12000 : 5000);
}

// Show a dialog. `build` gets its form and a function that closes it.
export function openDialog(title, build) {
  const dialog = element("dialog", { "aria-label": title });
  const form = element("form", { method: "dialog" });
  const close = () => dialog.close();
  dialog.append(form);
  dialog.addEventListener("close", () => dialog.remove());
  append(form, [element("h2", {}, title)]);
  build(form, close);
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

export function buttons(close, cancel, ...actions) {
  return element("div.buttons", {}, button(cancel, close), actions);
}

// Let the arrow keys move the focus among the matching elements of a list.
export function arrowKeys(list, selector) {
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const items = [...list.querySelectorAll(selector)];
    const place = items.indexOf(document.activeElement);
    if (!step || place < 0) return;
    event.preventDefault();
    items[Math.max(0, Math.min(items.length - 1, place + step))].focus();
  });
  return list;
}

// Run a function after the drawn frame is visible, some milliseconds after it was drawn.
export function afterFrame(run, milliseconds = 50) {
  requestAnimationFrame(() => setTimeout(run, milliseconds));
}
