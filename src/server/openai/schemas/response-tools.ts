import * as z from 'zod';
import { about, ignored, notSupported, optional } from '../../../schemas/fields.js';
import { type McpTool, mcpTool } from '../../answering/schemas/mcp-tools.js';
import { functionName, limitTools } from '../../answering/schemas/tools.js';

/** Most functions and custom tools of a list, those inside of namespaces included. */
const MAX_TOOLS = 512;

const ownFields = {
  defer_loading: ignored('Accepted; the model is told of every tool at once.'),
  allowed_callers: notSupported('programs that call tools', ['direct'], ['direct', 'programmatic'], []),
};

const functionTool = z.object({
  type: z.literal('function'),
  name: about(functionName, 'What the model calls it.'),
  description: optional(z.string(), 'What it does; the model reads it.'),
  parameters: optional(z.record(z.string(), z.unknown()), 'JSON schema of its arguments, an object.'),
  strict: optional(
    z.boolean(),
    'The arguments follow the schema even where the model chooses whether to call. Not given: true where each object of ' +
      'the schema requires all its properties and allows no others.',
  ),
  output_schema: ignored('Accepted; the model reads what a call gives as it is.'),
  ...ownFields,
});

const customTool = z.object({
  type: z.literal('custom'),
  name: about(functionName, 'What the model calls it.'),
  description: optional(z.string(), 'What it does; the model reads it.'),
  format: optional(
    z.discriminatedUnion('type', [
      about(z.object({ type: z.literal('text') }), 'Any text.'),
      about(
        z.object({
          type: z.literal('grammar'),
          syntax: about(
            z.enum(['lark', 'regex']),
            'The input follows a regex; of a Lark grammar the model is only told.',
          ),
          definition: about(z.string(), 'The grammar.'),
        }),
        'A text of a form.',
      ),
    ]),
    'What the input looks like.',
  ),
  ...ownFields,
});

const namespaceTool = z.object({
  type: z.literal('namespace'),
  name: about(functionName, 'The namespace, which comes back with each call of a tool in it.'),
  description: optional(z.string(), 'What its tools are for; the model reads it with the first of them.'),
  tools: about(
    z.array(z.discriminatedUnion('type', [functionTool, customTool])).max(MAX_TOOLS),
    'Its functions and custom tools, which the model calls as NAMESPACE__NAME.',
  ),
});

const searchTool = z.object({
  type: z.literal('tool_search'),
  execution: about(z.literal('client'), 'The client searches; a search by the server is left out.'),
  description: optional(z.string(), 'What can be found; the model reads it.'),
  parameters: optional(z.record(z.string(), z.unknown()), 'JSON schema of what is searched for, an object.'),
});

/** A tool of a type that only OpenAI's servers know. */
const foreignTool = z.looseObject({
  // A fault that ends the check: else a union would take this form's fault for that of its own form.
  type: z
    .string()
    .refine((type) => !['function', 'custom', 'namespace', 'mcp'].includes(type), { abort: true }),
});

const tool = z.union([functionTool, customTool, namespaceTool, searchTool, mcpTool, foreignTool]);

/** Schema of a list of tools. */
export const toolList = z
  .array(tool)
  .max(MAX_TOOLS)
  .superRefine(limitTools)
  .superRefine((tools, context) => {
    const count = tools.reduce((sum, one) => sum + numberIn(one), 0);
    if (count <= MAX_TOOLS) return;
    const message = `there are ${count} tools in it, at most ${MAX_TOOLS} are taken`;
    context.addIssue({ code: 'custom', message, continue: false });
  });

const named = z.object({
  type: z.enum(['function', 'custom']),
  name: about(functionName, 'The function, or the custom tool; one of a namespace also as NAMESPACE__NAME.'),
});

export const toolChoice = z.union(
  [
    z.enum(['none', 'auto', 'required']),
    named,
    z.object({
      type: z.literal('mcp'),
      server_label: about(z.string(), 'The server of tools.'),
      name: optional(z.string(), 'Its tool. Not given: any of them.'),
    }),
    z.object({
      type: z.literal('allowed_tools'),
      mode: about(z.enum(['auto', 'required']), 'Whether one of them has to be called.'),
      tools: about(z.array(named).min(1), 'The tools that may be called.'),
    }),
  ],
  {
    error:
      'expected \'none\', \'auto\', \'required\', {"type": "function", "name": ...}, {"type": "mcp", "server_label": ...} or allowed_tools',
  },
);

/** Number of tools in one of a list, which may have been found faulty already. */
function numberIn(one: ResponseTool): number {
  return one.type === 'namespace' && Array.isArray(one.tools) ? one.tools.length : 1;
}

export type ResponseTool = z.output<typeof tool>;
export type { McpTool };
export type ResponseFunction = z.output<typeof functionTool>;
export type CustomTool = z.output<typeof customTool>;
export type NamespaceTool = z.output<typeof namespaceTool>;
export type SearchTool = z.output<typeof searchTool>;
