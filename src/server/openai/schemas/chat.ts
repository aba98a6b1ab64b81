import * as z from 'zod';
import { responseFormat } from '../guides.js';
import { chatTemplate, commonFields, reasoningFields } from './common.js';
import { about, component, count, ignored, notSupported, optional } from './fields.js';
import { withOtherFields } from './fields-node.js';
import { OTHER_CHAT_FIELDS, OTHER_MESSAGE_FIELDS, OTHER_PART_FIELDS } from './other-fields.js';
import { functionFieldsOfOld, madeCalls, madeFunctionCall, toolFields } from './tools.js';

const text = () => z.string();
const PART = { type: z.string(), text: optional(text()) };
const OWN_PART = { ...PART, refusal: optional(text(), 'What the model wrote, in a part of type refusal.') };

/** A part of content; one that is no text is refused by the name of its place. @param ofType field of each type's text */
const part = <T extends typeof PART>(fields: T, ofType: Readonly<Record<string, 'text' | 'refusal'>>) =>
  withOtherFields(z.object(fields), OTHER_PART_FIELDS).transform((given, context) => {
    const { type } = given as { type: string };
    const refuse = (issue: { message: string; path?: string[]; params?: object }) => {
      context.addIssue({ code: 'custom', ...issue, continue: false });
      return z.NEVER;
    };
    const field = Object.hasOwn(ofType, type) ? ofType[type]! : null;
    if (field === null)
      return refuse({ message: `parts of type '${type}': the model reads text`, params: { refused: true } });
    const found = (given as Partial<Record<string, string>>)[field];
    if (found === undefined) return refuse({ message: 'expected a string', path: [field] });
    return { type: 'text', text: found };
  });

const ONLY_TEXT =
  'expected a string or a list of {"type": "text"} parts (no other kind of part is supported)';

/** Content of a message: a text, or parts that are all text. */
const content = () => z.union([text(), z.array(part(PART, { text: 'text' }))], { error: ONLY_TEXT });

/** Content of an assistant's message, of which a part may be a refusal. */
const ownContent = () =>
  z.union([text(), z.array(part(OWN_PART, { text: 'text', refusal: 'refusal' }))], { error: ONLY_TEXT });

const fieldsOfMessage = <T extends z.ZodRawShape>(fields: T) =>
  withOtherFields(z.object(fields), OTHER_MESSAGE_FIELDS);

export const message = component(
  'ChatMessage',
  z.discriminatedUnion('role', [
    fieldsOfMessage({
      role: z.enum(['system', 'developer', 'user']),
      content: about(content(), 'Text, or parts of type text. Text that spells a special token stays text.'),
      name: optional(text(), 'Reaches the chat template.'),
    }),
    fieldsOfMessage({
      role: z.literal('assistant'),
      content: about(ownContent().nullish(), 'May be null where there are tool calls.'),
      refusal: optional(text(), 'Accepted; not part of the prompt.'),
      reasoning: optional(text(), 'What the model thought; reaches the chat template, as reasoning_content.'),
      reasoning_content: optional(text(), 'The same under the older name.'),
      name: optional(text(), 'Reaches the chat template.'),
      tool_calls: optional(madeCalls, 'Calls that the model made; they reach the chat template.'),
      function_call: optional(madeFunctionCall, {
        description: 'The older form of one call.',
        deprecated: true,
      }),
    }),
    fieldsOfMessage({
      role: z.enum(['tool', 'function']),
      content: about(content(), 'What the tool answered.'),
      tool_call_id: optional(text(), 'Which call it answers.'),
      name: optional(text(), 'Reaches the chat template.'),
    }),
  ]),
  'A message of the conversation.',
);

export const chatRequestSchema = component(
  'ChatCompletionRequest',
  withOtherFields(
    z.object({
      ...commonFields,
      messages: about(z.array(message).min(1), {
        description: 'The conversation so far, which the chat template of the model makes a prompt of.',
        examples: [[{ role: 'user', content: 'What is the capital of France?' }]],
      }),
      max_completion_tokens: count(
        1,
        'Most tokens of the answer. Not given: what the context leaves, up to the default of the server.',
      ),
      max_tokens: count(1, { description: 'The older name of max_completion_tokens.', deprecated: true }),
      logprobs: optional(z.boolean(), {
        description: 'Log-probabilities of the tokens of the answer.',
        default: false,
      }),
      top_logprobs: optional(
        z.int().min(-1),
        "How many of the most probable tokens are given at each place (-1: all); only with 'logprobs'.",
      ),
      add_generation_prompt: optional(
        z.boolean(),
        'Ends the prompt with the beginning of an answer. Default: true, unless the last message is continued.',
      ),
      continue_final_message: optional(z.boolean(), {
        description: 'The answer goes on with the last message, which is of the assistant.',
        default: false,
      }),
      echo: optional(z.boolean(), {
        description: 'With a last message of the assistant: its content is put before that of the answer.',
        default: false,
      }),
      add_special_tokens: optional(z.boolean(), {
        description:
          'Adds the tokens that the model wants around a text, beside those that the chat template writes.',
        default: false,
      }),
      documents: optional(
        z.array(z.record(z.string(), z.string())),
        'Documents for the chat template, such as {"title": ..., "text": ...}; of no use where the template does not look for them.',
      ),
      chat_template: chatTemplate,
      chat_template_kwargs: optional(
        z.record(z.string(), z.unknown()),
        'Further variables of the chat template, such as {"enable_thinking": false}.',
      ),
      ...toolFields,
      prediction: ignored(),
      ...functionFieldsOfOld,
      response_format: optional(responseFormat, 'What the answer has to look like: any text, or JSON.'),
      modalities: notSupported('any modality but text', ['text']),
      audio: notSupported('audio'),
      reasoning_effort: optional(
        z.string().min(1).max(32),
        "How much the model reasons, where its chat template knows that; 'none' turns reasoning off.",
      ),
      include_reasoning: optional(
        z.boolean(),
        'False: the answer comes without its reasoning, whose tokens count all the same.',
      ),
      ...reasoningFields,
      verbosity: ignored('Accepted; models here have no such setting.'),
      web_search_options: notSupported('web search'),
      store: ignored('Accepted; answers of this route are not kept.'),
    }),
    OTHER_CHAT_FIELDS,
  ),
  "OpenAI's fields, and those of vLLM for what the engine can do besides.",
);

/** Fields of a chat on which its prompt depends. */
export const chatPromptSchema = chatRequestSchema.pick({
  model: true,
  messages: true,
  add_generation_prompt: true,
  continue_final_message: true,
  add_special_tokens: true,
  documents: true,
  chat_template: true,
  chat_template_kwargs: true,
  tools: true,
  tool_choice: true,
  parallel_tool_calls: true,
  functions: true,
  function_call: true,
  reasoning_effort: true,
  truncate_prompt_tokens: true,
  max_completion_tokens: true,
  max_tokens: true,
  n_predict: true,
});

export type ChatPromptRequest = z.output<typeof chatPromptSchema>;
export type ChatRequest = z.output<typeof chatRequestSchema>;
export type ChatRequestMessage = ChatRequest['messages'][number];
