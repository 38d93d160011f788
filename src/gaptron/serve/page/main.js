// The page: which model and view are shown, and refreshing them once a second. It loads nothing from other hosts.

import { call, modelPath, onKeyNeeded, setKey } from "./api.js";
import { h, patch, watchHelp } from "./dom.js";
import * as challengers from "./challengers.js";
import * as live from "./live.js";
import * as log from "./log.js";
import * as overview from "./overview.js";
import * as segments from "./segments.js";
import * as settings from "./settings.js";
import * as start from "./start.js";
import * as tryit from "./tryit.js";

const INTERVAL = 1000; // ms
const VIEWS = { overview, live, try: tryit, challengers, segments, settings, log };
const element = (id) => document.getElementById(id);

let place = { model: "", view: "" };
let refresh = null; // of the view that is shown
let timer = 0;
let updatedAt = "";
let isLocked = false; // does even reading need another key?

// The hash is #/ for the start, and #/model/view.
function placeOf(hash) {
  const [, model = "", view = ""] = hash.slice(1).split("/");
  return model ? { model, view: view in VIEWS ? view : "overview" } : { model: "", view: "" };
}

function open() {
  place = placeOf(location.hash);
  refresh = null;
  patch(element("views"), Object.entries(VIEWS).map(([name, view]) =>
    h("a", { href: `#/${place.model}/${name}`, "aria-current": place.view === name && "page" }, view.title)));
  element("views").hidden = !place.model;
  element("view").replaceChildren("Loading.");
  document.title = place.model ? `${place.model}: ${VIEWS[place.view].title} – gaptron` : "gaptron";
  update();
}

async function update() {
  clearTimeout(timer);
  const opened = place;
  try {
    const { models, quarantined } = await listed();
    if (opened !== place) return;
    showModels(models, quarantined);
    const info = models.find((one) => one.name === place.model);
    if (!place.model || info) {
      if (refresh === null) {
        element("view").replaceChildren();
        refresh = (place.model ? VIEWS[place.view] : start).view(element("view"), info, modelPath(place.model));
      }
      await refresh(place.model ? info : models);
    } else {
      element("view").replaceChildren(h("p", quarantined.some((one) => one.name === place.model)
        ? "This model is quarantined: it cannot be used until the reason is repaired and the service is restarted."
        : "There is no model with this name. ", h("a", { href: "#/" }, "Show all models")));
      refresh = null;
    }
    if (opened !== place) return;
    if (isLocked) element("key-form").hidden = true; // otherwise somebody asked for a change that needs another key
    isLocked = false;
    updatedAt = new Date().toLocaleTimeString();
    showProblem("");
  } catch (problem) {
    if (opened !== place) return;
    isLocked = !element("key-form").hidden;
    if (problem.status === undefined) console.error(problem);
    const since = updatedAt ? ` What you see is from ${updatedAt}.` : "";
    if (!updatedAt) element("view").replaceChildren();
    showProblem(!isLocked ? `The service is not available: ${problem.message}.${since}` : "");
  }
  timer = setTimeout(update, document.hidden ? 10 * INTERVAL : INTERVAL);
}

async function listed() {
  try {
    const { models = [], quarantined = [] } = await call("v1/models");
    return { models, quarantined };
  } catch (problem) {
    if (problem.status !== 403 || !place.model) throw problem; // a key for one model may not list them
    return { models: [await call(modelPath(place.model))], quarantined: [] };
  }
}

function showModels(models, quarantined) {
  const names = [...models, ...quarantined].map((one) => one.name);
  element("choice").hidden = names.length === 0;
  patch(element("model"), h("option", { value: "" }, "All models"), names.map((name) => h("option", { value: name }, name)));
  if (document.activeElement !== element("model")) element("model").value = place.model;
  patch(element("quarantined"), quarantined.map((one) => h("li", `The model ${one.name} is quarantined: ${one.reason}`)));
}

function showProblem(text) {
  element("problem").hidden = text === "";
  if (element("problem").textContent !== text) element("problem").textContent = text;
}

onKeyNeeded((status, detail) => {
  const why = status === 401 ? "This service needs a key." : "The key does not allow this.";
  const text = `${why} ${detail}.`;
  if (element("key-reason").textContent !== text) element("key-reason").textContent = text;
  if (!element("key-form").hidden) return;
  element("key-form").hidden = false;
  element("key").focus();
});
element("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setKey(element("key").value);
  element("key").value = "";
  element("key-form").hidden = true;
  update();
});
element("model").addEventListener("change", () => {
  location.hash = element("model").value ? `#/${element("model").value}/${place.view || "overview"}` : "#/";
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  element("main").focus();
});
addEventListener("hashchange", open);
document.addEventListener("visibilitychange", () => document.hidden || update());
watchHelp(element("help"));
open();
