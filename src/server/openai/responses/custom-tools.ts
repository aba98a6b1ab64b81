import type { CustomTool } from '../schemas/response-tools.js';

/**
 * A custom tool as a function of one text, which models know how to call:
 *
 *   apply_patch, input "*** Begin Patch"    <->    apply_patch, arguments {"input": "*** Begin Patch"}
 *
 * A regex is followed. A grammar of Lark cannot be enforced within a text of JSON: the model reads it.
 */
export function asFunction({ description, format }: CustomTool) {
  const isRegex = format?.type === 'grammar' && format.syntax === 'regex';
  const grammar = format?.type === 'grammar' && !isRegex ? format.definition : undefined;
  const told = [description, grammar && `The input follows this grammar of Lark:\n${grammar}`];
  return {
    description: told.filter((text) => text !== undefined).join('\n\n') || undefined,
    parameters: {
      type: 'object',
      // A pattern of a schema may be found anywhere in a text; a tool's regex is the whole input.
      properties: {
        input: isRegex ? { type: 'string', pattern: `^(?:${format.definition})$` } : { type: 'string' },
      },
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
