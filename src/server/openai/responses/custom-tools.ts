import { InvalidRequestError } from '../../../errors/request-errors.js';
import { guideOf } from '../../../generation/guided.js';
import type { TextCodec } from '../../../generation/text-model.js';
import type { CustomTool } from '../schemas/response-tools.js';
import type { ToolSet } from './tool-set.js';

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
        input: isRegex ? { type: 'string', pattern: wholePattern(format.definition) } : { type: 'string' },
      },
      required: ['input'],
      additionalProperties: false,
    },
    strict: isRegex,
  };
}

/** A regex that matches a whole text, as a pattern of a schema says it. */
function wholePattern(definition: string): string {
  return `^(?:${definition})$`;
}

/**
 * Reports the fault of a custom tool's regex in terms of the regex alone, where the error names the
 * parameters that hold it.
 * @throws InvalidRequestError
 */
export async function rethrowPatternFault(
  error: unknown,
  tools: Pick<ToolSet, 'functions' | 'find'>,
  codec: TextCodec,
): Promise<void> {
  if (!(error instanceof InvalidRequestError) || error.apiCode !== 'invalid_guide') return;
  const index = Number(/^tools\[(\d+)\]/.exec(error.param ?? '')?.[1]);
  const tool = tools.functions[index];
  if (tool === undefined || tools.find(tool.name)?.kind !== 'custom') return;
  const pattern = patternOf(tool.parameters);
  if (pattern !== null) await guideOf({ regex: pattern }, `tools[${index}].format.definition`, codec);
}

/** The definition of a custom tool's regex in the parameters that `asFunction` made; null: they are others. */
function patternOf(parameters: unknown): string | null {
  const { properties } = (parameters ?? {}) as { properties?: { input?: { pattern?: unknown } } };
  const pattern = properties?.input?.pattern;
  const [, definition = null] = typeof pattern === 'string' ? (/^\^\(\?:(.*)\)\$$/s.exec(pattern) ?? []) : [];
  return definition;
}

/** Arguments of a call in which a model has put the input of a custom tool. */
export function argumentsOf(input: string): string {
  return JSON.stringify({ input });
}
