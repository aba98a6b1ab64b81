import * as z from 'zod';
import { about, component, count, ignored, notSupported, optional } from '../../../schemas/fields.js';
import { withOtherFields } from '../../../schemas/fields-node.js';
import { message } from '../../../schemas/messages.js';
import { responseFormat } from '../../answering/guides.js';
import { chatTemplate, commonFields, reasoningFields } from '../../answering/schemas/common.js';
import { OTHER_CHAT_FIELDS } from '../../answering/schemas/other-fields.js';
import { functionFieldsOfOld, toolFields } from '../../answering/schemas/tools.js';

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
          'Adds the tokens that the model wants around a text, besides those that the chat template writes.',
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
