// The server, asked. Every answer that is not good is an Error with what to do.

export async function ask(method, path, body) {
  const headers = { accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), credentials: "same-origin" });
  } catch {
    throw new Error("the server does not answer; is hol serve still running?");
  }
  if (!answer.ok) throw await explained(answer);
  const text = await answer.text();
  return answer.headers.get("content-type")?.includes("json") ? JSON.parse(text || "null") : text;
}

// The error of an answer, in words.
export async function explained(answer) {
  const text = await answer.text();
  const json = answer.headers.get("content-type")?.includes("json") ? JSON.parse(text || "null") : null;
  const errors = json?.errors ?? [];
  const error = new Error(errors.map(words).join("\n") || json?.message || text || `the server says ${answer.status}`);
  error.errors = errors;
  error.status = answer.status;
  return error;
}

export const words = ({ line, message, cure }) => `${line ? `line ${line}: ` : ""}${message}${cure ? `; ${cure}` : ""}`;

export const get = (path) => ask("GET", path);
export const post = (path, body = {}) => ask("POST", path, body);

// Server-sent events: { state, progress, point, log } are called with what came, and where it says so to which experiment. The browser comes back by itself.
export function watch(path, listeners, over = () => {}) {
  const source = new EventSource(path);
  for (const [kind, listener] of Object.entries(listeners)) {
    source.addEventListener(kind, (event) => listener(JSON.parse(event.data), event.lastEventId));
  }
  source.onerror = () => source.readyState === EventSource.CLOSED && over();
  return source;
}
