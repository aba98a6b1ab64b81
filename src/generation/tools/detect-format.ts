import { isHarmonyTemplate } from '../harmony/tokens.js';
import { CALLS_BEGIN } from './deepseek-parser.js';
import { GEMMA4_BEGIN, GEMMA4_HEAD } from './gemma4-parser.js';
import type { ToolFormatName } from './types.js';

/** Way in which functions are described to a model, and the format of its calls. */
export interface ToolStyle {
  format: ToolFormatName;
  /** True where the template describes functions and writes calls and results; otherwise the messages must. */
  usesTemplate: boolean;
}

/** Tests that recognise a format by the template that asks for it or writes it. */
const SIGNS: readonly (readonly [ToolFormatName, (source: string) => boolean])[] = [
  ['harmony', isHarmonyTemplate],
  ['gemma4', (source) => source.includes(GEMMA4_BEGIN + GEMMA4_HEAD)],
  ['mistral', (source) => source.includes('[TOOL_CALLS]')],
  ['deepseek_v3', (source) => source.includes(CALLS_BEGIN)],
  // Hermes has the same markers; only the tags inside distinguish them.
  ['qwen3_coder', (source) => source.includes('<tool_call>') && source.includes('<function=')],
  ['hermes', (source) => source.includes('<tool_call>')],
  ['pythonic', (source) => /\[func_name1?\(/.test(source) || source.includes('<|python_start|>')],
  ['llama3_json', (source) => source.includes('<|start_header_id|>') && /"parameters\\?"\s*:/.test(source)],
];

/**
 * Finds how a model calls functions, by its template. A template that knows functions, but writes calls in an
 * unknown format, is not used for them: the model would answer with calls that cannot be read.
 * @param source the chat template; null: none. @param chosen the operator's choice.
 */
export function toolStyle(source: string | null, chosen: ToolFormatName | 'auto'): ToolStyle {
  const knowsTools = source !== null && mentions(source, 'tools');
  if (chosen !== 'auto') return { format: chosen, usesTemplate: knowsTools };
  const format = knowsTools ? SIGNS.find(([, isThere]) => isThere(source))?.[0] : undefined;
  return format === undefined ? { format: 'hermes', usesTemplate: false } : { format, usesTemplate: true };
}

/** True where a template's statements or expressions use the variable. */
export function mentions(source: string, variable: string): boolean {
  return wordsOf(source).has(variable);
}

/** Most templates whose words are kept: those of the served models, and some that requests bring. */
const KEPT_TEMPLATES = 8;
const kept = new Map<string, ReadonlySet<string>>();

/** The words outside of texts in a template's statements and expressions. */
function wordsOf(source: string): ReadonlySet<string> {
  const known = kept.get(source);
  if (known !== undefined) return known;
  const words = new Set<string>();
  for (const code of codeOf(source)) {
    for (const [word] of code.matchAll(/(?<![\w.'"])\w{1,128}(?![\w'"])/g)) words.add(word);
  }
  if (kept.size === KEPT_TEMPLATES) kept.delete(kept.keys().next().value!);
  kept.set(source, words);
  return words;
}

/** Statements and expressions of a template, `{% ... %}` and `{{ ... }}`, in one pass over it. */
function* codeOf(source: string): Generator<string> {
  const kinds = [
    { begin: '{%', end: '%}', at: -1 },
    { begin: '{{', end: '}}', at: -1 },
  ];
  let from = 0;
  while (true) {
    for (const kind of kinds) {
      if (kind.at !== Number.POSITIVE_INFINITY && kind.at < from)
        kind.at = indexFrom(source, kind.begin, from);
    }
    const [kind] = kinds.toSorted((a, b) => a.at - b.at);
    const { begin, end, at } = kind!;
    if (at === Number.POSITIVE_INFINITY) return;
    const close = indexFrom(source, end, at + begin.length);
    // Without an end there is none for later ones either.
    if (close === Number.POSITIVE_INFINITY) kind!.at = close;
    else {
      yield source.slice(at, close + end.length);
      from = close + end.length;
    }
  }
}

function indexFrom(source: string, text: string, from: number): number {
  const at = source.indexOf(text, from);
  return at < 0 ? Number.POSITIVE_INFINITY : at;
}
