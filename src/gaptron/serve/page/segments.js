// How a model does for each value of its features.

import { optional } from "./api.js";
import { range } from "./chart.js";
import { h, named, note, patch } from "./dom.js";
import { count, DASH, interval, measure, plural, rate, value } from "./format.js";

export const title = "Segments";
const EVERY = 5;

export function view(root, model, path) {
  let updates = 0;
  const body = h("div");
  root.append(h("h2", {}, "Segments"), note("Features with at most 20 values. Each line goes from 0 to 1, the bar is a 95 % confidence interval; with many segments, one in twenty misses the true value by chance."), body);
  return async (info) => {
    if (updates++ % EVERY) return;
    const found = await optional(`${path}/segments`);
    const segments = found?.segments ?? [], rewards = info.actions;
    patch(body, segments.length === 0 ? h("p", {}, found ? "Nothing yet: segments appear when decisions with named features (words, yes or no) have outcomes." : "This service does not count segments.") :
      segments.map((segment) => h("section", { "data-key": `${segment.of_action ? "action" : "context"} ${segment.feature}` }, h("h3", {}, named(segment.feature), segment.of_action && " of the action played"),
        h("div", { class: "bars" }, h("div", { class: "head name" }, "Value"), h("div", { class: "head" }, measure(rewards)), h("div", { class: "head" }, "Decisions"),
          segment.values.map((one) => {
            const [low, high] = [value(one.low, rewards), value(one.high, rewards)].sort((a, b) => a - b);
            return [h("div", { class: "name" }, named(String(one.value ?? DASH))),
              range({ value: value(one.error_rate, rewards), low, high }, rate(one.error_rate, rewards), `${measure(rewards)} of ${plural(one.outcomes, "outcome")}: ${interval(one, rewards)}.`),
              h("div", {}, `${count(one.decisions)}, ${count(one.outcomes)} with outcome`)];
          })))));
  };
}
