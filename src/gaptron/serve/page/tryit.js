// Enter features and see the distribution. Nothing is decided or logged.

import { call } from "./api.js";
import { button, field, h, note, patch } from "./dom.js";
import { distribution, distributionOf } from "./live.js";

export const title = "Try it";
const PAUSE = 250; // ms without a key before the distribution is asked for
const MAX_FIELDS = 40;

export function view(root, model, path) {
  const form = h("form", { onsubmit: (event) => event.preventDefault(), oninput: soon }), result = h("div", { "aria-live": "polite" });
  let [timer, kind, info, fields] = [0, "", model, []];
  root.append(h("h2", "Try it"), note("What a decision for these features would be drawn from now. Nothing is decided or logged."), form, h("h3", "Distribution"), result);

  function soon() {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE);
  }

  async function ask() {
    let body;
    try {
      body = bodyOf(kind, form, fields);
    } catch (problem) {
      return void patch(result, h("p.warning", `These are not features yet: ${problem.message}`));
    }
    try {
      const preview = await call(`${path}/preview`, { method: "POST", body });
      patch(result, distribution(info, distributionOf(info.actions ? preview : { distribution: preview.distribution })));
    } catch (problem) {
      patch(result, h("p.warning", problem.message));
    }
  }

  function build(last) {
    const features = last?.features;
    kind = info.actions || (features && Object.keys(features).length > MAX_FIELDS) || last?.x?.indices ? "json" : info.features === "auto" || (!info.features && !last?.x) ? "named" : "numbers";
    if (kind === "json") {
      const request = info.actions ? { context: last?.context ?? {}, actions: last?.actions ?? [{ id: "offer-a", features: { price: 10 } }, { id: "offer-b", features: { price: 12 } }] } : last.x ? { x: last.x } : { features };
      form.replaceChildren(h("label.field", h("span", "The request as JSON"), h("textarea", { name: "json", rows: 14, spellcheck: "false" }, JSON.stringify(request, null, 1))));
    } else if (kind === "numbers") {
      const x = last?.x ?? Array(info.features ?? 1).fill(0);
      form.replaceChildren(h("label.field", h("span", `${x.length} numbers, separated by commas`), h("textarea", { name: "x", rows: 3, spellcheck: "false" }, x.join(", "))));
    } else {
      fields = [];
      const list = h("div");
      const add = (name, value) => {
        const field = [h("input", { type: "text", value: name, "aria-label": "Name of the feature" }), h("input", { type: "text", value, "aria-label": `Value of ${name || "the feature"}` })];
        fields.push(field);
        list.append(h("div.row", field));
        return field;
      };
      for (const [name, value] of Object.entries(features ?? { "": "" })) add(name, typeof value === "string" && value === asText(value) ? value : JSON.stringify(value));
      form.replaceChildren(note("A value is a number, true, false, null or text; text in quotes stays text. An empty name is left out."), list,
        button("Add a feature", () => add("", "")[0].focus()));
    }
    ask();
  }

  let isBuilt = false;
  return async (fresh) => {
    info = fresh;
    if (isBuilt) return;
    isBuilt = true;
    const [last] = (await call(`${path}/decisions?limit=1`)).decisions;
    build(last?.redacted ? undefined : last);
  };
}

const SCALAR = /^(-?\d+(\.\d+)?([eE][-+]?\d+)?|true|false|null|".*")$/s;
const asText = (text) => (SCALAR.test(text) ? JSON.parse(text) : text);

function bodyOf(kind, form, fields) {
  if (kind === "json") return JSON.parse(form.elements.json.value);
  if (kind === "numbers") {
    const x = form.elements.x.value.split(",").map((one) => (one.trim() === "" ? NaN : Number(one)));
    if (!x.every(Number.isFinite)) throw new Error("give numbers, separated by commas");
    return { x };
  }
  return { features: Object.fromEntries(fields.filter(([name]) => name.value).map(([name, value]) => [name.value, asText(value.value)])) };
}
