// The text editor: CodeMirror with errors at their lines, and completion.

import { EditorState, Compartment } from "@codemirror/state";
import { EditorView, keymap, lineNumbers, highlightActiveLine, drawSelection } from "@codemirror/view";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { StreamLanguage, syntaxHighlighting, HighlightStyle, bracketMatching } from "@codemirror/language";
import { setDiagnostics, lintGutter, lintKeymap } from "@codemirror/lint";
import { autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { toml } from "@codemirror/legacy-modes/mode/toml";
import { tcl } from "@codemirror/legacy-modes/mode/tcl";
import { tags } from "@lezer/highlight";

const LANGUAGES = { toml: StreamLanguage.define(toml), ns: StreamLanguage.define(tcl) };

const colours = HighlightStyle.define([
  { tag: tags.comment, color: "var(--soft)" },
  { tag: [tags.string, tags.atom], color: "var(--good)" },
  { tag: [tags.number, tags.bool], color: "var(--bad)" },
  { tag: [tags.propertyName, tags.variableName, tags.definition(tags.variableName)], color: "var(--blue)" },
  { tag: [tags.keyword, tags.standard(tags.variableName)], color: "var(--level-4)" },
]);

const theme = EditorView.theme({
  "&": { backgroundColor: "var(--paper)", color: "var(--ink)", height: "100%", fontSize: "13px" },
  "&.cm-focused": { outline: "2px solid var(--blue)" },
  ".cm-content": { fontFamily: 'ui-monospace, "SFMono-Regular", Menlo, "DejaVu Sans Mono", monospace', caretColor: "var(--ink)", padding: "8px 0" },
  ".cm-gutters": { backgroundColor: "var(--frame)", color: "var(--soft)", border: "0" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--frame) 70%, transparent)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "color-mix(in srgb, var(--blue) 25%, transparent) !important" },
  ".cm-tooltip": { backgroundColor: "var(--paper)", color: "var(--ink)", border: "1px solid var(--rule)", borderRadius: "5px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--blue)", color: "var(--paper)" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--bad)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad) 1px" },
});

export class Editor {
  constructor(place, { text, format, keys, changed }) {
    // The policy of the page forbids inline styles; a shadow root accepts constructed style sheets.
    const root = place.attachShadow({ mode: "open" });
    const inner = document.createElement("div");
    inner.style.height = "100%";
    root.append(inner);
    this.format = format;
    this.language = new Compartment();
    this.silent = false;
    this.view = new EditorView({
      parent: inner,
      root,
      state: EditorState.create({
        doc: text,
        extensions: [
          lineNumbers(), lintGutter(), history(), drawSelection(), highlightActiveLine(), bracketMatching(),
          syntaxHighlighting(colours), theme, this.language.of(LANGUAGES[format]),
          autocompletion({ override: [(context) => complete(context, this.format, keys)], icons: false }),
          keymap.of([...completionKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap]),
          EditorView.contentAttributes.of({ "aria-label": "Text of the experiment", spellcheck: "false" }),
          EditorView.lineWrapping,
          EditorView.updateListener.of((update) => update.docChanged && !this.silent && changed(this.text)),
        ],
      }),
    });
  }

  get text() {
    return this.view.state.doc.toString();
  }

  // Shows another text. Changes only the part that differs, which keeps the cursor and the undo history.
  show(text, format = this.format) {
    this.silent = true;
    if (format !== this.format) {
      this.format = format;
      this.view.dispatch({ effects: this.language.reconfigure(LANGUAGES[format]) });
    }
    const old = this.text;
    if (old !== text) {
      let from = 0;
      while (from < old.length && from < text.length && old[from] === text[from]) from += 1;
      let back = 0;
      while (back < old.length - from && back < text.length - from && old[old.length - 1 - back] === text[text.length - 1 - back]) back += 1;
      this.view.dispatch({ changes: { from, to: old.length - back, insert: text.slice(from, text.length - back) } });
    }
    this.silent = false;
  }

  showErrors(errors) {
    const { doc } = this.view.state;
    const diagnostics = errors.map(({ line, column, message, cure }) => {
      const own = doc.line(Math.min(Math.max(1, line ?? 1), doc.lines));
      const from = Math.min(own.from + Math.max(0, (column ?? 1) - 1), own.to);
      const word = /^[\w."'-]+/.exec(doc.sliceString(from, own.to))?.[0].length ?? 0;
      return { from, to: Math.min(own.to, from + Math.max(1, word)), severity: "error", message: cure ? `${message}; ${cure}` : message };
    });
    this.view.dispatch(setDiagnostics(this.view.state, diagnostics.sort((one, other) => one.from - other.from)));
  }

  goTo(line, column = 1) {
    const own = this.view.state.doc.line(Math.min(line, this.view.state.doc.lines));
    this.view.dispatch({ selection: { anchor: Math.min(own.to, own.from + column - 1) }, scrollIntoView: true });
    this.view.focus();
  }
}

// Returns the completions for the table that the cursor is in.
function complete(context, format, keys) {
  const word = context.matchBefore(/[\w:=.-]*/);
  if (!word || (word.from === word.to && !context.explicit)) return null;
  const line = context.state.doc.lineAt(context.pos);
  const before = line.text.slice(0, word.from - line.from);
  if (format === "ns" && !line.text.startsWith("#hol ")) return words(word.from, keys.ns);
  if (/transport\w*\s*=/.test(before) || /spec\s*=/.test(before)) return words(word.from, keys.transports);
  const section = tableAt(context.state.doc, line.number);
  if (/kind\s*=\s*"?$/.test(before)) return words(word.from, Object.keys(keys.workload));
  if (/[^=]*=/.test(before) && !before.includes("{")) return null;
  if (section === "network" || section.startsWith("network.") || /links|lans|paths/.test(before)) return words(word.from, keys.network, " = ");
  if (section === "workload" || /workload/.test(before)) {
    const kind = /kind\s*=\s*"(\w+)"/.exec(context.state.doc.toString())?.[1];
    return words(word.from, keys.workload[kind] ?? [...new Set(Object.values(keys.workload).flat())], " = ");
  }
  return words(word.from, section ? [] : keys.top);
}

const words = (from, list, after = "") => ({ from, options: list.map((label) => ({ label, apply: label + after })), validFor: /^[\w:=.-]*$/ });

function tableAt(doc, number) {
  for (let at = number; at > 0; at -= 1) {
    const heading = /^(?:#hol )?\s*\[+([\w."]+)\]+/.exec(doc.line(at).text);
    if (heading) return heading[1];
  }
  return "";
}
