// Requests to the service that this page came from, with the key if it needs one.

let key = sessionStorage.getItem("key") ?? "";
let askForKey = () => {};

export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

export const hasKey = () => key !== "";
export const onKeyNeeded = (ask) => { askForKey = ask; };
export function setKey(text) {
  key = text.trim();
  sessionStorage.setItem("key", key);
}

export async function request(path, { method = "GET", body, quiet = false } = {}) {
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Problem(0, "it cannot be reached");
  }
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({ detail: `${response.status} ${response.statusText}` }));
  if (!quiet && (response.status === 401 || problem.type === "/problems/forbidden")) askForKey(response.status, problem.detail);
  throw new Problem(response.status, problem.detail);
}

export async function call(path, options) {
  const response = await request(path, options);
  return response.status === 204 ? null : response.json();
}

export const modelPath = (name) => `v1/models/${encodeURIComponent(name)}`;
