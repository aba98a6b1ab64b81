import * as z from 'zod';
import { about, component, ignored, optional } from './fields.js';

const id = () => optional(z.string(), 'As it came with the item; it has no bearing on the answer.');
const status = () => ignored('As it came with the item; it has no bearing on the answer.');

const part = z.discriminatedUnion(
  'type',
  [
    z.object({ type: z.literal('input_text'), text: about(z.string(), 'The text.') }),
    z.object({
      type: z.literal('output_text'),
      text: about(z.string(), 'What the model wrote.'),
      annotations: ignored(),
      logprobs: ignored(),
    }),
    z.object({ type: z.literal('refusal'), refusal: about(z.string(), 'What the model wrote.') }),
  ],
  { error: 'expected a part of type input_text or output_text (no other kind of part is supported)' },
);

const content = () =>
  z.union([z.string(), z.array(part)], {
    error:
      'expected a string or a list of {"type": "input_text"} or "output_text" parts (no other kind of part is supported)',
  });

export const messageItem = z.object({
  type: optional(z.literal('message')),
  role: about(z.enum(['user', 'assistant', 'system', 'developer']), 'Who says it.'),
  content: about(content(), 'Text, or parts of text. Text that spells a special token stays text.'),
  id: id(),
  status: status(),
  phase: ignored(),
});

const functionCall = z.object({
  type: z.literal('function_call'),
  call_id: about(z.string(), 'What its output names.'),
  name: about(z.string(), 'The function.'),
  arguments: about(z.string(), 'JSON, as it came.'),
  id: id(),
  status: status(),
});

const functionCallOutput = z.object({
  type: z.literal('function_call_output'),
  call_id: about(z.string(), 'Which call it answers.'),
  output: about(content(), 'What the function gave.'),
  id: id(),
  status: status(),
});

const customCall = z.object({
  type: z.literal('custom_tool_call'),
  call_id: about(z.string(), 'What its output names.'),
  name: about(z.string(), 'The tool.'),
  input: about(z.string(), 'The text, as it came.'),
  id: id(),
  status: status(),
});

const customOutput = z.object({
  type: z.literal('custom_tool_call_output'),
  call_id: about(z.string(), 'Which call it answers.'),
  output: about(content(), 'What the tool gave.'),
  id: id(),
  status: status(),
});

const reasoning = z.object({
  type: z.literal('reasoning'),
  summary: ignored('Accepted; the chat template gets the reasoning itself.'),
  content: optional(
    z.array(
      z.object({ type: z.literal('reasoning_text'), text: about(z.string(), 'What the model thought.') }),
    ),
    'Reaches the chat template with the message behind it; most leave out what was thought in earlier turns.',
  ),
  encrypted_content: optional(
    z.string(),
    'As it came with the item: takes the place of content that is not there. That of other servers has no effect.',
  ),
  id: id(),
  status: status(),
});

const itemReference = z.object({
  type: z.literal('item_reference'),
  id: about(z.string(), 'An item of the output of a stored response.'),
});

/** Items by type. A message may lack its type. */
const typed = z.discriminatedUnion(
  'type',
  [
    messageItem.extend({ type: z.literal('message') }),
    functionCall,
    functionCallOutput,
    customCall,
    customOutput,
    reasoning,
    itemReference,
  ],
  {
    error:
      'expected an item of type message, function_call, function_call_output, custom_tool_call, custom_tool_call_output, reasoning or item_reference (no other is supported)',
  },
);

const item = component(
  'ResponseInputItem',
  z.union([typed, messageItem]),
  'A message, a call of a function that the model made, what a call gave, or what the model thought.',
);

export const MAX_ITEMS = 4096;

export const responseInput = about(z.union([z.string(), z.array(item).min(1).max(MAX_ITEMS)]), {
  description: 'What is answered: a text of the user, or the items of a conversation.',
  examples: ['Hello!'],
});

export type InputItem = z.output<typeof item>;
export type MessageItem = z.output<typeof messageItem>;
