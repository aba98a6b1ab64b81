import * as z from 'zod';
import { MAX_INT32 } from '../../../../base/int32.js';
import {
  about,
  component,
  count,
  ignored,
  notSupported,
  optional,
  shortText,
} from '../../../schemas/fields.js';
import { withOtherFields } from '../../../schemas/fields-node.js';
import { guideFields } from '../../answering/guides.js';
import { engineFields, reasoningFields, samplingFields, stopFields } from '../../answering/schemas/common.js';
import { OTHER_RESPONSE_FIELDS } from '../../answering/schemas/other-fields.js';
import { metadata } from '../../web/metadata.js';
import { responseInput } from './response-items.js';
import { toolChoice, toolList } from './response-tools.js';

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
      strict: optional(
        z.boolean(),
        'true: a schema that cannot be followed as a whole is refused. Otherwise what cannot be followed is left out, which the header X-Skein-Warning says.',
      ),
    }),
    'JSON that follows a schema.',
  ),
]);

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
        toolList,
        'Functions that the model may call, in the form that its chat template has for them, custom tools, whose input is a text, both also in namespaces, a search for tools that the client makes, and MCP servers (type mcp), whose tools run here. Tools of types that are not known here are left out, which a warning in the header X-Skein-Warning reports.',
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
      ...reasoningFields,
      structured_outputs: guideFields.structured_outputs,
      user: optional(shortText(MAX_RECORD), 'Comes back with the response.'),
      safety_identifier: optional(shortText(MAX_RECORD), 'Comes back with the response.'),
      prompt_cache_key: optional(
        shortText(MAX_RECORD),
        'Comes back with the response; prompts are found in the cache by their content.',
      ),
      client_metadata: ignored(),
      prompt_cache_retention: ignored(),
      prompt_cache_options: ignored(),
      service_tier: ignored(),
      background: optional(z.boolean(), {
        description:
          "Answers at once, and makes the response whether or not a client reads it; needs 'store'. With 'stream' its events can be read again.",
        default: false,
      }),
      conversation: optional(
        z.union([z.string(), z.object({ id: about(z.string(), 'Its id.') })], {
          error: 'expected the id of a conversation, or {"id": ...}',
        }),
        "A conversation whose items come before the input, and get the items of the request and of its response; not with 'previous_response_id'.",
      ),
      prompt: notSupported('stored prompts'),
      max_tool_calls: count(
        1,
        'Most calls of tools of MCP servers that run here; after them the model answers without.',
      ),
      context_management: optional(
        z
          .array(
            z.object({
              type: about(z.literal('compaction'), 'The only kind.'),
              compact_threshold: optional(
                z.int().min(1).max(MAX_INT32),
                'Tokens of the prompt from which on it is compacted. Not given: three quarters of the context.',
              ),
            }),
          )
          .max(1),
        'What happens to a conversation that has become long: it is replaced by a summary, which is the first item of the output.',
      ),
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
    max_output_tokens: true,
    reasoning: true,
    truncation: true,
    conversation: true,
    chat_template_kwargs: true,
  }),
  'The fields of a response that its prompt is made of.',
);

export const compactRequestSchema = component(
  'CompactRequest',
  responseRequestSchema
    .pick({
      model: true,
      instructions: true,
      previous_response_id: true,
      tools: true,
      parallel_tool_calls: true,
      reasoning: true,
      text: true,
      chat_template_kwargs: true,
      prompt_cache_key: true,
      prompt_cache_retention: true,
      prompt_cache_options: true,
      service_tier: true,
      client_metadata: true,
      priority: true,
      cache_salt: true,
      time_limit_ms: true,
    })
    .extend({ input: optional(responseInput, 'The conversation, or what follows on the earlier response.') }),
  'A conversation that is compacted.',
);

export type CompactRequest = z.output<typeof compactRequestSchema>;
export type InputTokensRequest = z.output<typeof inputTokensSchema>;
export type ResponseRequest = z.output<typeof responseRequestSchema>;
