import type { CustomTool, ResponseRequest } from '../schemas/responses.js';
import { keptTools } from './kept-tools.js';

/** Names of a request's custom tools. */
export function customNames(request: Pick<ResponseRequest, 'tools'>): ReadonlySet<string> {
  return new Set(keptTools(request).flatMap(({ type, name }) => (type === 'custom' ? [name] : [])));
}

/**
 * A custom tool as a function of one text, which models know how to call:
 *
 *   apply_patch, input "*** Begin Patch"    <->    apply_patch, arguments {"input": "*** Begin Patch"}
 *
 * A regex is followed. A grammar of Lark cannot be enforced within a text of JSON: the model reads it.
 */
export function asFunction({ name, description, format }: CustomTool) {
  const isRegex = format?.type === 'grammar' && format.syntax === 'regex';
  const grammar = format?.type === 'grammar' && !isRegex ? format.definition : undefined;
  const told = [description, grammar && `The input follows this grammar of Lark:\n${grammar}`];
  return {
    name,
    description: told.filter((text) => text !== undefined).join('\n\n') || undefined,
    parameters: {
      type: 'object',
      properties: { input: isRegex ? { type: 'string', pattern: format.definition } : { type: 'string' } },
      required: ['input'],
      additionalProperties: false,
    },
    strict: isRegex,
  };
}

/** Arguments of a call in which a model has put the input of a custom tool. */
export function argumentsOf(input: string): string {
  return JSON.stringify({ input });
}

/** The input in a call's arguments; the arguments themselves where they have none. */
export function inputOf(args: string): string {
  try {
    const { input } = JSON.parse(args) as { input?: unknown };
    return typeof input === 'string' ? input : args;
  } catch {
    return args;
  }
}
