import * as z from 'zod';
import { jsonUnits } from '../../../../models/json-units.js';
import { about, component, optional } from '../../../schemas/fields.js';
import { mcpTool } from './mcp-tools.js';

const MAX_TOOLS = 512;
/**
 * Most units of all tools together: the length of their texts, and 32 for each value. They are written into prompts and
 * answers.
 */
export const MAX_TOOL_UNITS = 2 ** 20;

/** Check for superRefine that limits the size of all tools. */
export function limitTools(tools: readonly unknown[], context: z.RefinementCtx): void {
  if (toolUnits(tools) <= MAX_TOOL_UNITS) return;
  const message = `the tools are longer together than ${MAX_TOOL_UNITS} characters, of which each value counts 32`;
  context.addIssue({ code: 'custom', message, continue: false });
}

/** Units of tools together; where they are too many, some number above the limit. */
export function toolUnits(tools: readonly unknown[]): number {
  return jsonUnits(tools, MAX_TOOL_UNITS);
}

/** Schema of names that every format of calls can hold. */
export const functionName = about(
  z.string().regex(/^[\w.:/-]{1,128}$/, 'expected up to 128 letters, digits and any of _ . : / -'),
  'The name of the function.',
);

const functionFields = {
  name: functionName,
  description: optional(z.string(), 'What it does; the model reads it.'),
  parameters: optional(z.record(z.string(), z.unknown()), 'JSON schema of its arguments, an object.'),
};

const functionTool = component(
  'FunctionTool',
  z.object({
    type: z.literal('function'),
    function: z.object({
      ...functionFields,
      strict: optional(z.boolean(), {
        description: 'The arguments follow the schema even where the model chooses whether to call.',
        default: false,
      }),
    }),
  }),
  'A function that the model may call.',
);

const named = z.object({
  type: z.literal('function'),
  function: about(z.object({ name: functionName }), 'The function.'),
});

export const toolFields = {
  tools: optional(
    z
      .array(
        z.discriminatedUnion('type', [functionTool, mcpTool], {
          error: "expected 'function' or 'mcp' (no other kind of tool is supported)",
        }),
      )
      .max(MAX_TOOLS)
      .superRefine(limitTools),
    'Functions that the model may call, in the form that its chat template has for them, and MCP servers (type mcp), whose tools run here.',
  ),
  tool_choice: optional(
    z.union(
      [
        z.enum(['none', 'auto', 'required']),
        named,
        z.object({
          type: z.literal('allowed_tools'),
          allowed_tools: about(
            z.object({
              mode: about(z.enum(['auto', 'required']), 'Whether one of them has to be called.'),
              tools: about(z.array(named).min(1), 'Those that may be called.'),
            }),
            'The tools that may be called of those that there are.',
          ),
        }),
      ],
      {
        error:
          'expected \'none\', \'auto\', \'required\', {"type": "function", "function": {"name": ...}} or allowed_tools',
      },
    ),
    "Whether functions are called: 'none', 'auto' as the model likes, 'required' at least one, or one by its name. Required and named calls follow their schemas. Default auto.",
  ),
  parallel_tool_calls: optional(z.boolean(), {
    description: 'false: at most one call in an answer.',
    default: true,
  }),
};

/** Parsed values of those fields. */
type AskedToolFields = z.output<z.ZodObject<typeof toolFields>>;

/** The same without servers. */
export type ToolFields = Omit<AskedToolFields, 'tools'> & {
  tools?: z.output<typeof functionTool>[] | undefined;
};

/** The older forms of `tools` and `tool_choice`, which OpenAI's clients still have. */
export const functionFieldsOfOld = {
  functions: optional(z.array(z.object(functionFields)).max(MAX_TOOLS).superRefine(limitTools), {
    description: "The older form of 'tools': at most one of them is called, by the message's function_call.",
    deprecated: true,
  }),
  function_call: optional(
    z.union([z.enum(['none', 'auto']), z.object({ name: functionName })], {
      error: "expected 'none', 'auto' or {\"name\": ...}",
    }),
    { description: "The older form of 'tool_choice'; only with 'functions'.", deprecated: true },
  ),
};
