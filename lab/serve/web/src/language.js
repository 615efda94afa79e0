// Recognises the language of a text: an ns script creates a simulator, and an experiment file has keys and tables.

const SCRIPT = /^(?!\s*#).*\[\s*new\s+Simulator\s*\]/m;
const FILE = /^\s*(\[[\w."'-]+\]|[\w."'-]+\s*=)/m;

// Returns "ns" or "toml"; `otherwise` if the text could be either.
export function languageOf(text, otherwise) {
  if (SCRIPT.test(text)) return "ns";
  return otherwise === "ns" && FILE.test(text.replace(/^#.*$/gm, "")) ? "toml" : otherwise;
}
