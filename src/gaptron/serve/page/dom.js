// Elements, and bringing a part of the page up to date without losing the focus, scroll positions or open details.

const HANDLERS = ["onclick", "onchange", "oninput", "onsubmit"];
const PROPERTIES = [...HANDLERS, "value", "checked", "disabled", "hidden"];

// h("p.note", { id: "x" }, "text"): the classes and the attributes may be left out.
function made(create, tag, rest) {
  const [name, ...classes] = tag.split("."), hasAttributes = rest[0]?.constructor === Object;
  const element = create(name), children = hasAttributes ? rest.slice(1) : rest;
  if (classes.length) element.setAttribute("class", classes.join(" "));
  for (const [name, value] of Object.entries(hasAttributes ? rest[0] : {})) {
    if (PROPERTIES.includes(name)) element[name] = value;
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// Text is only ever added as text nodes: names of labels and features cannot contain markup.
export const h = (tag, ...rest) => made((name) => document.createElement(name), tag, rest);
export const s = (tag, ...rest) => made((name) => document.createElementNS("http://www.w3.org/2000/svg", name), tag, rest);

export function patch(target, ...children) {
  const fresh = h("div", children).childNodes;
  patchNodes(target, [...fresh]);
}

function patchNodes(target, fresh) {
  const old = [...target.childNodes];
  fresh.forEach((node, place) => {
    const current = old[place];
    if (current === undefined) target.append(node);
    else if (current.nodeName !== node.nodeName || current.id !== node.id || current.dataset?.key !== node.dataset?.key) current.replaceWith(node);
    else update(current, node);
  });
  old.slice(fresh.length).forEach((node) => node.remove());
}

function update(current, node) {
  if (current.nodeType !== Node.ELEMENT_NODE) {
    if (current.data !== node.data) current.data = node.data; // otherwise screen readers would repeat it every second
    return;
  }
  for (const { name, value } of node.attributes) if (current.getAttribute(name) !== value) current.setAttribute(name, value);
  for (const { name } of [...current.attributes]) if (name !== "open" && !node.hasAttribute(name)) current.removeAttribute(name);
  for (const handler of HANDLERS) current[handler] = node[handler];
  if ("disabled" in node) current.disabled = node.disabled;
  patchNodes(current, [...node.childNodes]);
}

// A number with one line that explains it, on hover and on focus.
export const explained = (text, help, attributes = {}) =>
  h("span", { tabindex: 0, "data-help": help, "aria-description": help, ...attributes }, text);

export const note = (...children) => h("p.note", children);
export const button = (text, onclick, attributes = {}) => h("button", { type: "button", onclick, ...attributes }, text);

// A name that somebody else chose: isolated, because it may be written from right to left.
export const named = (text, attributes = {}) => h("bdi", attributes, text);

export const field = (text, help, ...children) => h("label.field", h("span", text), children, h("small", help));
export const nameField = () => field("Name", "Lowercase letters, digits and -.", h("input", { type: "text", name: "name", required: true, pattern: "[a-z0-9][a-z0-9\\-]{0,63}", autocomplete: "off" }));
export const choose = (attributes, pairs, chosen) => h("select", attributes, pairs.map(([value, text]) => h("option", { value, selected: value === chosen }, text)));

export const section = (title, text, ...children) => h("section", h("h2", title), text && note(text), children);

// columns: a heading, or [heading, explanation, "text" or "number"]; rows of texts or nodes.
export function table(caption, headings, rows) {
  const columns = headings.map((one) => (Array.isArray(one) ? one : [one]));
  const head = columns.map(([heading, help, kind]) => h("th", { scope: "col", class: kind === "number" && "number" }, help ? explained(heading, help) : heading));
  const body = rows.map((row) => h("tr", row.map((cell, at) =>
    h("td", { class: columns[at][2] || null, "data-help": columns[at][2] === "number" && columns[at][1] }, cell))));
  return h("div.scroll", { tabindex: 0, role: "region", "aria-label": caption }, h("table", h("thead", h("tr", head)), h("tbody", body)));
}

export function watchHelp(tip) {
  let shown = null;
  const show = (target) => {
    shown = target;
    tip.textContent = target.dataset.help;
    tip.hidden = false;
    const [at, size] = [target.getBoundingClientRect(), tip.getBoundingClientRect()];
    const below = at.bottom + 4 + size.height < innerHeight || at.top < size.height + 4;
    tip.style.left = `${Math.max(8, Math.min(at.left, innerWidth - size.width - 8))}px`;
    tip.style.top = `${below ? at.bottom + 4 : at.top - size.height - 4}px`;
  };
  const hide = () => { shown = null; tip.hidden = true; };
  for (const kind of ["pointerover", "focusin"]) {
    document.addEventListener(kind, (event) => {
      if (tip.contains(event.target)) return;
      const target = event.target.closest?.("[data-help]");
      if (target) show(target);
      else if (shown && !shown.contains(document.activeElement)) hide();
    });
  }
  document.addEventListener("focusout", hide);
  document.addEventListener("scroll", hide, true);
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
}

export async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(button.parentElement.parentElement.querySelector("pre")); // Ctrl-C copies it
    button.textContent = "Selected";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}

export const snippet = (title, text) => h("div", {},
  h("div.row.apart", h("h3", title), button("Copy", (event) => copy(text, event.target), { "aria-label": `Copy: ${title}` })),
  h("pre", { tabindex: 0 }, h("code", text)));
