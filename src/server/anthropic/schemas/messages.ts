import * as z from 'zod';
import { MAX_INT32 } from '../../../../base/int32.js';
import { about, component, ignored, notSupported, optional, shortText } from '../../../schemas/fields.js';
import { withOtherFields } from '../../../schemas/fields-node.js';
import { guideFields } from '../../answering/guides.js';
import { cachePrompt, engineFields, samplingFields, stopFields } from '../../answering/schemas/common.js';
import { OTHER_ANTHROPIC_FIELDS } from '../../answering/schemas/other-fields.js';
import { functionName, limitTools } from '../../answering/schemas/tools.js';
import { message, systemText } from './blocks.js';

const MAX_TOOLS = 512;

/** A tool of the client's own, as described to the model. */
const clientTool = z.object({
  type: optional(z.literal('custom'), "'custom', or absent."),
  name: functionName,
  description: optional(z.string(), 'What it does; the model reads it.'),
  input_schema: about(z.record(z.string(), z.unknown()), 'JSON schema of its arguments, an object.'),
  strict: optional(z.boolean(), {
    description: 'The arguments follow the schema even where the model chooses whether to call.',
    default: false,
  }),
  cache_control: ignored('Accepted; prompts are found in the cache by their content.'),
});

/** A tool of a type that only Anthropic's models and servers know. */
const foreignTool = z.looseObject({ type: z.string().refine((type) => type !== 'custom') });

const tool = z.union([clientTool, foreignTool]);

const parallel = {
  disable_parallel_tool_use: optional(z.boolean(), {
    description: 'true: at most one call.',
    default: false,
  }),
};
const toolChoice = z.discriminatedUnion(
  'type',
  [
    about(z.object({ type: z.literal('auto'), ...parallel }), 'As the model likes.'),
    about(z.object({ type: z.literal('any'), ...parallel }), 'At least one call.'),
    about(
      z.object({ type: z.literal('tool'), name: about(functionName, 'The tool.'), ...parallel }),
      'One call, of this tool.',
    ),
    about(z.object({ type: z.literal('none') }), 'No call.'),
  ],
  { error: "expected a choice of type 'auto', 'any', 'tool' or 'none'" },
);

const thinking = z.discriminatedUnion(
  'type',
  [
    about(
      z.object({
        type: z.enum(['enabled', 'adaptive', 'between_tools']),
        budget_tokens: about(
          z.int().min(0).max(MAX_INT32).nullish(),
          "Most tokens of thinking: after them its end is forced, and the answer follows. 'max_tokens' limits both together.",
        ),
        display: optional(
          z.enum(['summarized', 'omitted']),
          "'omitted': blocks of thinking have a signature and no text. Else they have the whole text.",
        ),
      }),
      'The model thinks, where its chat template has a switch for it.',
    ),
    about(z.object({ type: z.literal('disabled') }), 'The same as no field.'),
  ],
  { error: "expected a configuration of type 'enabled', 'adaptive', 'between_tools' or 'disabled'" },
);

const jsonFormat = z.object({
  type: z.literal('json_schema'),
  schema: about(z.record(z.string(), z.unknown()), 'The JSON schema that the answer follows.'),
});

/** Fields of what the prompt is made of, which a count of its tokens has too. */
const promptFields = {
  model: optional(z.string(), 'A name that GET /v1/models lists. Not given: the first of them.'),
  messages: about(z.array(message).min(1), {
    description:
      "The conversation so far. Messages of one role in a row are one message; the answer goes on with a last message of the assistant's.",
    examples: [[{ role: 'user', content: 'What is the capital of France?' }]],
  }),
  system: optional(systemText(), 'What stands before the conversation: text, or blocks of text.'),
  tools: optional(
    z.array(tool).max(MAX_TOOLS).superRefine(limitTools),
    'Tools that the model may call. Tools of types that are not known here are left out, which a warning in the header X-Skein-Warning reports.',
  ),
  tool_choice: optional(
    toolChoice,
    'Whether tools are called. Calls that are asked for follow their schemas. Default auto.',
  ),
  thinking: optional(thinking, 'Whether the model thinks before it answers, where it can choose.'),
  output_config: optional(
    z.object({
      format: optional(jsonFormat, 'JSON that follows a schema.'),
      effort: optional(
        z.string().min(1).max(32),
        'How much the model thinks, where its chat template knows that.',
      ),
    }),
    'The form of the answer.',
  ),
  output_format: optional(jsonFormat, {
    description: "The older name of 'output_config.format'.",
    deprecated: true,
  }),
  chat_template_kwargs: optional(
    z.record(z.string(), z.unknown()),
    'Further variables of the chat template.',
  ),
  cache_control: ignored('Accepted; prompts are found in the cache by their content.'),
  context_management: ignored('Accepted; the conversation is read as it came.'),
  mcp_servers: notSupported('servers of tools (MCP) of its own', []),
  speed: ignored(),
  user_profile_id: ignored(),
  workspace_id: ignored(),
};

export const messageRequestSchema = component(
  'MessageRequest',
  withOtherFields(
    z.object({
      ...promptFields,
      max_tokens: about(
        z.int().min(1).max(MAX_INT32),
        'Most tokens of the answer, thinking included. What the context has no room for is cut off with the stop reason model_context_window_exceeded.',
      ),
      stop_sequences: about(
        stopFields.stop,
        'Texts that end the answer. They are not part of it; stop_sequence names the one that did.',
      ),
      stream: optional(z.boolean(), {
        description: 'Answers with server-sent events while the text is generated.',
        default: false,
      }),
      ...samplingFields,
      ...engineFields,
      ...guideFields,
      min_tokens: stopFields.min_tokens,
      stop_token_ids: stopFields.stop_token_ids,
      ignore_eos: stopFields.ignore_eos,
      cache_prompt: cachePrompt,
      metadata: ignored(),
      service_tier: ignored(),
      inference_geo: ignored(),
      diagnostics: ignored(),
      container: notSupported('containers'),
      thread: optional(
        z.discriminatedUnion('type', [
          about(z.object({ type: z.literal('create') }), 'The conversation as it is sent.'),
          about(
            z.object({
              type: z.literal('continue'),
              previous_message_id: about(shortText(256), 'Id of the last message of it.'),
            }),
            'Refused with thread_not_found, so that the whole conversation is sent again: none is kept here.',
          ),
        ]),
        'Where the conversation before these messages is.',
      ),
    }),
    OTHER_ANTHROPIC_FIELDS,
  ),
  "Anthropic's fields, and those of vLLM for what the engine can do besides.",
);

export const countTokensSchema = component(
  'CountTokensRequest',
  z.object(promptFields),
  'The fields of a message that its prompt is made of.',
);

export type MessageRequest = z.output<typeof messageRequestSchema>;
export type CountTokensRequest = z.output<typeof countTokensSchema>;
export type Tool = z.output<typeof tool>;
export type ClientTool = z.output<typeof clientTool>;
