// The start: the models as cards with a curve, and a form that creates one.

import { call, hasKey, modelPath } from "./api.js";
import { sparkline } from "./chart.js";
import { choose, field, h, nameField, patch, section, snippet } from "./dom.js";
import { interval, measure, percent, plural, rate, value } from "./format.js";

const EVERY = 5; // updates between two readings of the reports
const MAX_REPORTS = 30;
const EXAMPLE = { country: "NL", age: 31 };

export function view(root) {
  const cards = h("div"), form = h("details", h("summary", "Create a model"));
  const content = creation();
  const reports = {};
  let updates = 0;
  root.append(cards, form);
  form.append(content);
  return async (models) => {
    if (updates === 0) form.open = models.length === 0;
    if (updates++ % EVERY === 0) {
      for (const { name } of models.slice(0, MAX_REPORTS)) reports[name] = await call(`${modelPath(name)}/report`);
    }
    patch(cards, h("h2", models.length ? "Models" : "There is no model yet"),
      models.length === 0 && h("p", "A model chooses a label or an action for each request and learns from what you report back. Create one here; the snippets below the form then use it."),
      h("div.tiles.cards", models.map((info) => card(info, reports[info.name]))));
  };
}

function card(info, report) {
  const curve = (report?.recent?.curve ?? []).map((one) => value(one.error_rate, info.actions));
  const recent = report?.recent;
  return h("a.tile", { href: `#/${info.name}/overview`, "data-key": info.name }, h("h3", info.name),
    h("p", info.actions ? "actions of each request" : plural(info.labels.length, "label"), info.mode === "shadow" && ", shadow mode"),
    h("p", plural(info.decisions, "decision"), report && info.decisions > 0 && `, ${percent((report.counts.outcomes + (report.counts.waiting ?? 0)) / info.decisions)} with feedback`),
    recent && h("p.large", rate(recent.error_rate, info.actions)),
    recent && h("p", `${measure(info.actions).toLowerCase()} of the last ${plural(recent.outcomes, "outcome")}, ${interval(recent, info.actions)}`),
    sparkline(curve, `${measure(info.actions)} over the last outcomes; the line below is 0`));
}

// --- creating a model ---------------------------------------------------------------------------------------------

const option = (name, text, checked, note) => h("label.option", h("input", { type: "radio", name, value: text[0], checked }), ` ${text[1]}`, note && h("small", ` ${note}`));

function creation() {
  const message = h("p", { role: "status" }), snippets = h("div");
  const labels = field("Labels", "One per line: what the model chooses between.", h("textarea", { name: "labels", rows: 4, spellcheck: "false" }));
  const form = h("form", { id: "new-model", onsubmit: (event) => { event.preventDefault(); create(form, message, snippets); } },
    nameField(),
    h("fieldset", h("legend", "What it chooses"),
      option("chooses", ["labels", "one of the same labels every time"], true),
      option("chooses", ["actions", "one of the actions that each request brings"], false, "(articles, offers: each with its own features)"), labels),
    h("fieldset", h("legend", "What your feedback means"),
      option("feedback", ["bandit", "whether the choice was right, or its reward"], true, "(clicks, sales, corrections without the right label)"),
      option("feedback", ["full", "which one was right"], false, "(somebody checks every case)")),
    h("fieldset", h("legend", "How long feedback may take"),
      h("div.row", h("input", { type: "number", name: "timeout", min: "0.1", step: "any", "aria-label": "Timeout" }),
        choose({ name: "unit", "aria-label": "Unit of the timeout" }, [["60", "minutes"], ["1", "seconds"], ["3600", "hours"], ["86400", "days"]]),
        h("small", "Empty: no limit. Otherwise 5 seconds to 7 days.")),
      option("on_timeout", ["ignore", "no feedback in time says nothing"], true),
      option("on_timeout", ["wrong", "no feedback in time means that the choice was wrong"], false, "(no click; all feedback is then learned at the timeout)")),
    h("button.main", "Create the model"), message);
  form.addEventListener("change", () => { labels.hidden = form.elements.chooses.value === "actions"; });
  return h("div", form, snippets);
}

async function create(form, message, snippets) {
  const fields = form.elements, spec = { name: fields.name.value, feedback: fields.feedback.value, on_timeout: fields.on_timeout.value };
  if (fields.chooses.value === "actions") spec.actions = true;
  else spec.labels = fields.labels.value.split("\n").map((one) => one.trim()).filter(Boolean);
  if (fields.timeout.value) spec.feedback_timeout = Number(fields.timeout.value) * Number(fields.unit.value);
  message.textContent = "Creating and compiling the model; this takes a few seconds.";
  try {
    const info = await call("v1/models", { method: "POST", body: spec });
    if (!info.actions) await call(`${modelPath(info.name)}/preview`, { method: "POST", body: { features: EXAMPLE } }); // compiles, so that the first decision is fast
    message.replaceChildren(`The model ${info.name} is ready. `, h("a", { href: `#/${info.name}/overview` }, "Open it"));
    patch(snippets, snippetsOf(info));
    snippets.scrollIntoView({ block: "nearest" });
  } catch (problem) {
    message.textContent = `The model was not created: ${problem.message}.`;
  }
}

// --- snippets -----------------------------------------------------------------------------------------------------

export const baseUrl = () => location.href.split("#")[0].replace(/\/$/, "");
export const curlKey = () => (hasKey() ? ` -H "Authorization: Bearer $GAPTRON_KEY"` : "");

export function snippetsOf(info) {
  const url = `${baseUrl()}/${modelPath(info.name)}/decisions`, choice = info.actions ? "action" : "label";
  const example = Number.isInteger(info.features) ? Array(info.features).fill(0.5) : EXAMPLE; // either may be sent first
  const actions = { "offer-a": { price: 10 }, "offer-b": { price: 12 } };
  const body = JSON.stringify(info.actions ? { context: example, actions: Object.entries(actions).map(([id, features]) => ({ id, features })) } : Array.isArray(example) ? { x: example } : { features: example });
  const [[kind, right]] = Object.entries(info.feedback === "full" ? { [choice]: info.actions ? "offer-a" : info.labels[0] } : { correct: true });
  const outcome = JSON.stringify({ [kind]: right }), quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const curl = `ID=order-$(date +%s)  # your id of the event: a repeated request gets the same decision
curl ${quoted(url)}${curlKey()} \\
  -H 'Content-Type: application/json' \\
  -d '{"event_id": "'$ID'", ${body.slice(1)}'
curl -X PUT ${quoted(url)}/$ID/outcome${curlKey()} \\
  -H 'Content-Type: application/json' -d ${quoted(outcome)}`;
  const python = `# pip install 'gaptron[client]'
${hasKey() ? "import os\n\n" : ""}from gaptron.client import Client

with Client("${baseUrl()}", "${info.name}"${hasKey() ? ', key=os.environ["GAPTRON_KEY"]' : ""}) as client:
    decision = client.decide(${JSON.stringify(example)}${info.actions ? `, actions=${JSON.stringify(actions)}` : ""})
    print(decision.${choice}, decision.propensity)
    client.send_outcome(decision, ${kind}=${right === true ? "True" : JSON.stringify(right)})`;
  const script = `// Node.js 18 or newer, as decide.mjs
const url = "${url}";
const headers = { "Content-Type": "application/json"${hasKey() ? ", Authorization: `Bearer ${process.env.GAPTRON_KEY}`" : ""} };
const id = crypto.randomUUID();
const decision = await fetch(url, {
  method: "POST", headers, body: JSON.stringify({ event_id: id, ...${body} }),
}).then((response) => response.json());
console.log(decision.${choice}, decision.propensity);
await fetch(\`\${url}/\${id}/outcome\`, { method: "PUT", headers, body: JSON.stringify(${outcome}) });`;
  return section("Use it", ["Each snippet asks for a decision and sends its outcome. Use your own features: the first decision settles whether they are named or a list of numbers.", hasKey() && " GAPTRON_KEY holds a key with the roles decide and feedback."],
    snippet("curl", curl), snippet("Python", python), snippet("JavaScript", script));
}
