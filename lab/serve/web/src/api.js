// Requests to the server. A failed request throws an Error whose message says what is wrong and what to do.

export async function request(method, path, body) {
  const headers = { accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), credentials: "same-origin" });
  } catch {
    throw new Error("the server does not respond; check that hol serve is running");
  }
  if (!answer.ok) throw await errorOf(answer);
  const text = await answer.text();
  return answer.headers.get("content-type")?.includes("json") ? JSON.parse(text || "null") : text;
}

// Returns the Error of a failed response.
export async function errorOf(answer) {
  const text = await answer.text();
  const json = answer.headers.get("content-type")?.includes("json") ? JSON.parse(text || "null") : null;
  const errors = json?.errors ?? [];
  const error = new Error(errors.map(describe).join("\n") || json?.message || text || `the server returned status ${answer.status}`);
  error.errors = errors;
  error.status = answer.status;
  return error;
}

const describe = ({ line, message, cure }) => `${line ? `line ${line}: ` : ""}${message}${cure ? `; ${cure}` : ""}`;

export const get = (path) => request("GET", path);
export const post = (path, body = {}) => request("POST", path, body);

// Calls the listener of each kind of server-sent event (state, progress, point, log, …) with the data and the id of the event. In the stream of all experiments, the id is the number of the experiment. The browser reconnects by itself.
export function watch(path, listeners, onClosed = () => {}) {
  const source = new EventSource(path);
  for (const [kind, listener] of Object.entries(listeners)) {
    source.addEventListener(kind, (event) => listener(JSON.parse(event.data), event.lastEventId));
  }
  source.onerror = () => source.readyState === EventSource.CLOSED && onClosed();
  return source;
}
