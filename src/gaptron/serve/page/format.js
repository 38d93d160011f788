// Numbers, times and names as text.

export const DASH = "–";
const missing = (value) => value === null || value === undefined;

export const count = (number) => (missing(number) ? DASH : number.toLocaleString("en"));
export const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;
export const percent = (share) => (missing(share) ? DASH : `${(100 * share).toFixed(1)} %`);
export const probability = (p) => (missing(p) ? DASH : p > 0 && p < 0.0005 ? p.toExponential(1) : p.toFixed(3));
export const signed = (text, value) => (value < 0 ? text.replace("-", "−") : `+${text}`);

// A model with actions has rewards, one with labels has errors; the service reports errors of both.
export const measure = (rewards) => (rewards ? "Mean reward" : "Error rate");
export const value = (error, rewards) => (missing(error) ? null : rewards ? 1 - error : error);
export const rate = (error, rewards) => (missing(error) ? DASH : rewards ? (1 - error).toFixed(3) : percent(error));
export function interval(one, rewards) {
  if (missing(one?.low)) return DASH;
  const [low, high] = rewards ? [one.high, one.low] : [one.low, one.high];
  return rewards ? `${rate(low, true)} to ${rate(high, true)}` : `${(100 * low).toFixed(1)} to ${percent(high)}`;
}

export const span = (seconds) => {
  if (missing(seconds)) return "none";
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["min", 60]]) if (seconds >= size && seconds % size === 0) return `${seconds / size} ${unit}`;
  return `${seconds} s`;
};

export const time = (text) => `${text.slice(0, 19).replace("T", " ")} UTC`;
export const clock = (text) => text.slice(11, 19);

export const pairs = (features) => (missing(features) ? "" : Array.isArray(features) ? features.join(", ") :
  Object.entries(features).map(([name, one]) => `${name}: ${missing(one) ? DASH : one}`).join(", "));

// A label as people see it: its display name if it has one.
export const shown = (info, label) => info?.display_names?.[label] ?? label;
