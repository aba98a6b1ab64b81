import { CALLS_BEGIN } from './deepseek-parser.js';
import type { ToolFormatName } from './types.js';

/** Way in which a model is told of functions, and the format of its calls. */
export interface ToolStyle {
  format: ToolFormatName;
  /** True where the template describes functions and writes calls and results; otherwise the messages must. */
  usesTemplate: boolean;
}

/** Tests that recognise a format by the template that asks for it or writes it. */
const SIGNS: readonly (readonly [ToolFormatName, (source: string) => boolean])[] = [
  ['mistral', (source) => source.includes('[TOOL_CALLS]')],
  ['deepseek_v3', (source) => source.includes(CALLS_BEGIN)],
  // Hermes has the same markers; only the tags inside tell them apart.
  ['qwen3_coder', (source) => source.includes('<tool_call>') && source.includes('<function=')],
  ['hermes', (source) => source.includes('<tool_call>')],
  ['pythonic', (source) => /\[func_name1?\(/.test(source) || source.includes('<|python_start|>')],
  ['llama3_json', (source) => source.includes('<|start_header_id|>') && /"parameters\\?"\s*:/.test(source)],
];

/**
 * Finds how a model calls functions, by its template. A template that knows functions, but writes calls in an unknown
 * format, is not used for them: the model would answer with calls that nobody can read.
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
  // A client may have named the variable: other characters occur in no template, and must not become part of a pattern.
  if (!/^\w{1,128}$/.test(variable)) return false;
  const word = new RegExp(`(?<![\\w.'"])${variable}(?![\\w'"])`);
  for (const [code] of source.matchAll(/\{%[\s\S]*?%\}|\{\{[\s\S]*?\}\}/g)) if (word.test(code)) return true;
  return false;
}
