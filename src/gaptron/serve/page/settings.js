// The configuration of a model, and the keys of the service by their ids.

import { call } from "./api.js";
import { button, choose, field, h, named, note, patch, section, table } from "./dom.js";
import { shown, span } from "./format.js";

export const title = "Settings";

export function view(root, model, path) {
  let info = model, keysRead = false;
  const message = h("p", { role: "status" }), facts = h("div"), keys = h("div"), labels = h("div");
  const form = h("form", { onsubmit: (event) => { event.preventDefault(); save(); } },
    field("Timeout in seconds", "How long an outcome is learned from. Empty: no limit.", h("input", { type: "number", name: "feedback_timeout", min: 5, max: 604800, step: "any", value: model.feedback_timeout ?? "" })),
    field("A missing outcome", "What it means when the timeout ends.", choose({ name: "on_timeout" }, [["ignore", "says nothing"], ["wrong", "means that the choice was wrong"]], model.on_timeout)),
    field("Epsilon", "The share of decisions drawn uniformly, so that other policies can be evaluated on the log.", h("input", { type: "number", name: "epsilon", min: 0, max: 0.999, step: "any", value: model.epsilon })),
    field("Mode", "In shadow mode the caller plays its own choice, and the model learns from it.", choose({ name: "mode" }, [["live", "live"], ["shadow", "shadow"]], model.mode)),
    !model.actions && field("New labels", "One per line. Labels are never removed from the log.", h("textarea", { name: "add_labels", rows: 2, spellcheck: "false" })),
    h("button.main", "Save"), message);
  root.append(h("h2", "Settings"), form, labels, facts, keys);

  async function change(body, done) {
    try {
      info = await call(path, { method: "PATCH", body });
      message.textContent = done;
      return true;
    } catch (problem) {
      message.textContent = `Nothing was changed: ${problem.message}.`;
      return false;
    }
  }

  async function save() {
    const fields = form.elements, body = {};
    const wanted = { feedback_timeout: fields.feedback_timeout.value === "" ? null : Number(fields.feedback_timeout.value), on_timeout: fields.on_timeout.value, epsilon: Number(fields.epsilon.value), mode: fields.mode.value };
    for (const [name, value] of Object.entries(wanted)) if (value !== info[name]) body[name] = value;
    const added = (fields.add_labels?.value ?? "").split("\n").map((one) => one.trim()).filter(Boolean);
    if (added.length) body.add_labels = added;
    if (Object.keys(body).length === 0) return void (message.textContent = "Nothing to change.");
    if (await change(body, `Saved: ${Object.keys(body).join(", ")}.`) && added.length) fields.add_labels.value = "";
    draw();
  }

  function draw() {
    const retired = info.retired ?? [];
    patch(labels, (info.labels ?? []).length === 0 ? null : section("Labels", "A display name is only shown here; a retired label is never offered again, and its history stays.",
      h("ul.plain", info.labels.map((label) => h("li.row", { "data-key": label }, named(label), shown(info, label) !== label && h("small", " shown as ", named(shown(info, label))), retired.includes(label) && h("small", " retired"),
        button("Name", () => rename(label), { "aria-label": `Name ${label}` }), !retired.includes(label) && button("Retire", () => retire(label), { "aria-label": `Retire ${label}` }))))));
    const rows = [["algorithm", info.algorithm], ["feedback", info.feedback], ["features", info.features ?? "set by the first decision"], ["seed", info.seed], ["timeout", span(info.feedback_timeout)], ["settings", JSON.stringify(info.settings)]];
    patch(facts, section("Fixed when the model was created", null, table("Fixed settings", ["Name", ["Value", null, "text"]], rows.filter(([name]) => name !== "timeout").map(([name, value]) => [name, String(value)])),
      (info.notes ?? []).map((text) => note(text))));
  }

  async function rename(label) {
    const name = prompt(`Display name of ${label}; empty: as it is`, info.display_names?.[label] ?? "");
    if (name !== null && await change({ display_names: { [label]: name.trim() || null } }, "Saved: display_names.")) draw();
  }

  async function retire(label) {
    if (confirm(`Never offer ${label} again?`) && await change({ retire_labels: [label] }, `${label} is retired.`)) draw();
  }

  async function readKeys() {
    keysRead = true;
    try {
      const found = (await call("v1/keys", { quiet: true })).keys;
      patch(keys, section("Keys", null, found.length === 0 ? h("p", "This service has no keys: it serves this machine only. Create one with ", h("code", "gaptron keys add"), ".") : table("Keys", ["Id", "Roles", "Model", "State"],
        found.map((one) => [one.id, one.roles.join(", "), one.model ?? "all", one.revoked ? "revoked" : "valid"]))));
    } catch (problem) {
      patch(keys, section("Keys", null, h("p", `The keys cannot be listed: ${problem.message}.`)));
    }
  }

  return async (fresh) => {
    info = fresh;
    draw();
    if (!keysRead) await readKeys();
  };
}
