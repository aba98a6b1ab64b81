import * as z from 'zod';
import { guideFields } from '../guides.js';
import { engineFields, samplingFields, stopFields } from './common.js';
import { about, component, count, ignored, notSupported, optional, shortText } from './fields.js';
import { withOtherFields } from './fields-node.js';
import { metadata } from './metadata.js';
import { OTHER_RESPONSE_FIELDS } from './other-fields.js';
import { responseInput } from './response-items.js';
import { functionName, limitTools } from './tools.js';

const MAX_TOOLS = 512;
/** Most UTF-16 units of a field for the client's own records, which comes back with every event. */
const MAX_RECORD = 1024;
const MAX_DESCRIPTION = 16_384;
export const LOG_PROBS = 'message.output_text.logprobs';
export const SEALED_REASONING = 'reasoning.encrypted_content';
/** What `include` may ask for besides, which only tools of OpenAI's own have. */
const OTHER_INCLUDES = [
  'code_interpreter_call.outputs',
  'computer_call_output.output.image_url',
  'file_search_call.results',
  'message.input_image.image_url',
  'web_search_call.action.sources',
  'web_search_call.results',
] as const;

const jsonSchema = z.union([z.boolean(), z.record(z.string(), z.unknown())], {
  error: 'expected a JSON schema',
});

const textFormat = z.discriminatedUnion('type', [
  about(z.object({ type: z.literal('text') }), 'Any text.'),
  about(z.object({ type: z.literal('json_object') }), 'Any JSON object.'),
  about(
    z.object({
      type: z.literal('json_schema'),
      name: optional(shortText(MAX_RECORD), 'Comes back with the response.'),
      description: optional(shortText(MAX_DESCRIPTION), 'Comes back with the response.'),
      schema: about(jsonSchema, 'The JSON schema that the answer follows.'),
      strict: optional(z.boolean(), 'The schema is followed either way.'),
    }),
    'JSON that follows a schema.',
  ),
]);

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
});

/** A tool of a type that only OpenAI's servers know. */
const foreignTool = z.looseObject({
  type: z.string().refine((type) => type !== 'function' && type !== 'custom'),
});

const tool = z.union([functionTool, customTool, foreignTool]);

const named = z.object({
  type: z.enum(['function', 'custom']),
  name: about(functionName, 'The function, or the custom tool.'),
});

const toolChoice = z.union(
  [
    z.enum(['none', 'auto', 'required']),
    named,
    z.object({
      type: z.literal('allowed_tools'),
      mode: about(z.enum(['auto', 'required']), 'Whether one of them has to be called.'),
      tools: about(z.array(named).min(1), 'The tools that may be called.'),
    }),
  ],
  { error: 'expected \'none\', \'auto\', \'required\', {"type": "function", "name": ...} or allowed_tools' },
);

export const responseRequestSchema = component(
  'ResponseRequest',
  withOtherFields(
    z.object({
      model: optional(z.string(), 'A name that GET /v1/models lists. Not given: the first of them.'),
      input: responseInput,
      instructions: optional(
        z.string(),
        'What stands before the input, as a message of the system. Not carried over from an earlier response.',
      ),
      previous_response_id: optional(z.string(), 'A stored response whose conversation this goes on with.'),
      max_output_tokens: count(
        1,
        'Most tokens of the answer, reasoning included. Not given: what the context leaves, up to the default of the server.',
      ),
      stream: optional(z.boolean(), {
        description: 'Answers with server-sent events while the text is generated.',
        default: false,
      }),
      stream_options: optional(
        z.object({ include_obfuscation: ignored() }),
        'Accepted; nothing in it has a bearing on the answer.',
      ),
      store: optional(z.boolean(), {
        description: 'Keeps the response, so that it can be asked for, and gone on with, by its id.',
        default: true,
      }),
      metadata: optional(metadata, 'Up to 16 texts by names, which come back with the response.'),
      text: optional(
        z.object({
          format: optional(textFormat, 'What the answer has to look like: any text, or JSON.'),
          verbosity: optional(
            shortText(MAX_RECORD),
            'Comes back with the response; it has no bearing on the answer.',
          ),
        }),
        'The form of the answer.',
      ),
      tools: optional(
        z.array(tool).max(MAX_TOOLS).superRefine(limitTools),
        'Functions that the model may call, in the form that its chat template has for them, and custom tools, whose input is a text. Tools of types that are not known here are left out, which a warning in the header X-Skein-Warning tells.',
      ),
      tool_choice: optional(
        toolChoice,
        "Whether functions are called: 'none', 'auto' as the model likes, 'required' at least one, or one by its name. Default auto.",
      ),
      parallel_tool_calls: optional(z.boolean(), { description: 'false: at most one call.', default: true }),
      reasoning: optional(
        z.object({
          effort: optional(
            z.enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']),
            'How much the model thinks, where its chat template knows such a word.',
          ),
          summary: ignored('Accepted; the item of the reasoning has all of it, and no summary.'),
          generate_summary: ignored('The older name of summary.'),
        }),
        'How a model that reasons does it.',
      ),
      include: optional(
        z.array(z.enum([LOG_PROBS, SEALED_REASONING, ...OTHER_INCLUDES])),
        `What more the response has: '${LOG_PROBS}', the log-probabilities of its tokens; '${SEALED_REASONING}', its reasoning in a form to send back. Others are accepted without effect.`,
      ),
      top_logprobs: optional(
        z.int().min(0).max(20),
        `How many of the most probable tokens are given at each place; only with '${LOG_PROBS}' in 'include'.`,
      ),
      truncation: optional(z.enum(['auto', 'disabled']), {
        description:
          "What happens to a conversation that is too long: 'auto' leaves out its oldest messages but those of the system, 'disabled' refuses it.",
        default: 'disabled',
      }),
      chat_template_kwargs: optional(
        z.record(z.string(), z.unknown()),
        'Further variables of the chat template, such as {"enable_thinking": false}.',
      ),
      ...samplingFields,
      ...stopFields,
      ...engineFields,
      structured_outputs: guideFields.structured_outputs,
      user: optional(shortText(MAX_RECORD), 'Comes back with the response.'),
      safety_identifier: optional(shortText(MAX_RECORD), 'Comes back with the response.'),
      prompt_cache_key: optional(
        shortText(MAX_RECORD),
        'Comes back with the response; prompts are found in the cache by their content.',
      ),
      client_metadata: ignored(),
      prompt_cache_retention: ignored(),
      service_tier: ignored(),
      background: optional(z.boolean(), {
        description:
          "Answers at once, and makes the response whether or not somebody reads it; needs 'store'. With 'stream' its events can be read again.",
        default: false,
      }),
      conversation: notSupported("conversations ('previous_response_id' goes on with a stored response)"),
      prompt: notSupported('stored prompts'),
      max_tool_calls: notSupported('tools of its own'),
      context_management: notSupported('management of the context', []),
      moderation: notSupported('moderation'),
    }),
    OTHER_RESPONSE_FIELDS,
  ),
  "OpenAI's fields, and those of vLLM for what the engine can do besides.",
);

export const inputTokensSchema = component(
  'InputTokensRequest',
  responseRequestSchema.pick({
    model: true,
    input: true,
    instructions: true,
    previous_response_id: true,
    text: true,
    tools: true,
    tool_choice: true,
    parallel_tool_calls: true,
    reasoning: true,
    truncation: true,
    conversation: true,
    chat_template_kwargs: true,
  }),
  'The fields of a response that its prompt is made of.',
);

export type InputTokensRequest = z.output<typeof inputTokensSchema>;
export type ResponseRequest = z.output<typeof responseRequestSchema>;
export type ResponseTool = z.output<typeof tool>;
export type ResponseFunction = z.output<typeof functionTool>;
export type CustomTool = z.output<typeof customTool>;
