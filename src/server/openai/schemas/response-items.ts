import * as z from 'zod';
import { about, component, ignored, optional } from '../../../schemas/fields.js';
import { functionName, limitTools } from '../../answering/schemas/tools.js';
import { toolList } from './response-tools.js';

/** Most tools in an item of type mcp_list_tools. */
const MAX_LISTED = 512;

const id = () => optional(z.string(), 'As it came with the item; it has no bearing on the answer.');
const status = () => ignored('As it came with the item; it has no bearing on the answer.');
/** Fields that clients keep with any item. */
const kept = () => ({ id: id(), status: status(), internal_chat_message_metadata_passthrough: ignored() });
const namespace = () => optional(functionName, 'The namespace of the tool, as it came with the call.');

const inputImage = z
  .object({
    type: z.literal('input_image'),
    image_url: optional(
      z.string(),
      'A picture (JPEG, PNG, WebP or GIF): a data: URL with base64, or an https: address, where --allow-image-urls is given.',
    ),
    file_id: optional(z.string(), 'In its place: the id of a picture that was stored with POST /v1/files.'),
    detail: ignored('Accepted; a picture has the size that the model gives it.'),
  })
  .refine(({ image_url: url, file_id: id }) => (url === undefined) !== (id === undefined), {
    error: 'expected one of image_url and file_id',
  });

const part = z.discriminatedUnion(
  'type',
  [
    z.object({ type: z.literal('input_text'), text: about(z.string(), 'The text.') }),
    inputImage,
    z.object({
      type: z.literal('output_text'),
      text: about(z.string(), 'What the model wrote.'),
      annotations: ignored(),
      logprobs: ignored(),
    }),
    z.object({ type: z.literal('refusal'), refusal: about(z.string(), 'What the model wrote.') }),
  ],
  {
    error:
      'expected a part of type input_text, input_image or output_text (no other kind of part is supported)',
  },
);

const content = () =>
  z.union([z.string(), z.array(part)], {
    error:
      'expected a string or a list of {"type": "input_text"}, "input_image" or "output_text" parts (no other kind of part is supported)',
  });

const messageItem = z.object({
  type: optional(z.literal('message')),
  role: about(z.enum(['user', 'assistant', 'system', 'developer']), 'Who says it.'),
  content: about(
    content(),
    'Text, or parts of text and, of a user, pictures. Text that spells a special token stays text.',
  ),
  ...kept(),
  phase: ignored(),
});

const functionCall = z.object({
  type: z.literal('function_call'),
  call_id: about(z.string(), 'What its output names.'),
  name: about(z.string(), 'The function.'),
  namespace: namespace(),
  arguments: about(z.string(), 'JSON, as it came.'),
  ...kept(),
});

const functionCallOutput = z.object({
  type: z.literal('function_call_output'),
  call_id: about(z.string(), 'Which call it answers.'),
  output: about(content(), 'What the function gave.'),
  ...kept(),
});

const customCall = z.object({
  type: z.literal('custom_tool_call'),
  call_id: about(z.string(), 'What its output names.'),
  name: about(z.string(), 'The tool.'),
  namespace: namespace(),
  input: about(z.string(), 'The text, as it came.'),
  ...kept(),
});

const customOutput = z.object({
  type: z.literal('custom_tool_call_output'),
  call_id: about(z.string(), 'Which call it answers.'),
  output: about(content(), 'What the tool gave.'),
  ...kept(),
});

const reasoning = z.object({
  type: z.literal('reasoning'),
  summary: ignored('Accepted; the chat template gets the reasoning itself.'),
  content: optional(
    z.array(
      z.object({ type: z.literal('reasoning_text'), text: about(z.string(), 'What the model thought.') }),
    ),
    'Reaches the chat template with the message after it; most leave out what was thought in earlier turns.',
  ),
  encrypted_content: optional(
    z.string(),
    'As it came with the item: takes the place of content that is not there. That of other servers has no effect.',
  ),
  ...kept(),
});

const searchCall = z.object({
  type: z.literal('tool_search_call'),
  call_id: optional(z.string(), 'What its output names.'),
  execution: ignored('As it came with the item.'),
  arguments: about(z.unknown(), 'What was searched for, as it came.'),
  ...kept(),
});

const searchOutput = z.object({
  type: z.literal('tool_search_output'),
  call_id: optional(z.string(), 'Which search it answers.'),
  execution: ignored('As it came with the item.'),
  tools: about(toolList, 'The tools that were found, which the model may call from now on.'),
  ...kept(),
});

const additionalTools = z.object({
  type: z.literal('additional_tools'),
  role: ignored('Always developer.'),
  tools: about(toolList, 'Further tools, which the model may call from now on.'),
  ...kept(),
});

const compaction = z.object({
  type: z.literal('compaction'),
  encrypted_content: about(
    z.string(),
    'As it came with the item: what the conversation before it was about.',
  ),
  ...kept(),
});

const compactionTrigger = z.object({
  type: z.literal('compaction_trigger'),
  ...kept(),
});

const itemReference = z.object({
  type: z.literal('item_reference'),
  id: about(z.string(), 'An item of the output of a stored response.'),
});

const mcpListTools = z.object({
  type: z.literal('mcp_list_tools'),
  server_label: about(z.string(), 'The server in the request.'),
  tools: about(
    z
      .array(
        z.looseObject({
          name: about(z.string(), 'The tool.'),
          description: optional(z.string(), 'What it does.'),
          input_schema: about(z.unknown(), 'JSON schema of its arguments.'),
          annotations: about(z.unknown().optional(), 'What the server says of it besides.'),
        }),
      )
      .max(MAX_LISTED)
      .superRefine(limitTools),
    'The tools. As long as the item is in the conversation, its server is not asked again.',
  ),
  error: optional(z.string(), 'Why there are none.'),
  ...kept(),
});

const mcpApprovalRequest = z.object({
  type: z.literal('mcp_approval_request'),
  server_label: about(z.string(), 'The server in the request.'),
  name: about(z.string(), 'The tool that is to be called.'),
  arguments: about(z.string(), 'JSON, as it came.'),
  ...kept(),
});

const mcpApprovalResponse = z.object({
  type: z.literal('mcp_approval_response'),
  approval_request_id: about(z.string(), 'The id of the item that asked.'),
  approve: about(z.boolean(), 'true: the call runs. false: the model is told that it may not.'),
  reason: optional(z.string(), 'Why; the model reads it.'),
  ...kept(),
});

const mcpCall = z.object({
  type: z.literal('mcp_call'),
  server_label: about(z.string(), 'The server in the request.'),
  name: about(z.string(), 'The tool.'),
  arguments: about(z.string(), 'JSON, as it came.'),
  approval_request_id: optional(z.string(), 'The item that asked for the approval.'),
  output: optional(z.string(), 'What the call gave.'),
  error: optional(z.string(), 'What went wrong.'),
  ...kept(),
});

/** Types of items of tools that are not known here: calls of them, and their results. */
const HOSTED_TYPES = [
  'web_search_call',
  'file_search_call',
  'computer_call',
  'computer_call_output',
  'code_interpreter_call',
  'image_generation_call',
  'local_shell_call',
  'local_shell_call_output',
  'shell_call',
  'shell_call_output',
  'apply_patch_call',
  'apply_patch_call_output',
  'program',
  'program_output',
] as const;

const hostedItem = z.looseObject({
  type: about(
    z.enum(HOSTED_TYPES),
    "An item of a tool that OpenAI's servers know. It is stored, and is not part of the prompt; the header X-Skein-Warning says so.",
  ),
  id: id(),
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
    searchCall,
    searchOutput,
    additionalTools,
    compaction,
    compactionTrigger,
    itemReference,
    mcpListTools,
    mcpApprovalRequest,
    mcpApprovalResponse,
    mcpCall,
    hostedItem,
  ],
  {
    error:
      'expected an item of type message, function_call, function_call_output, custom_tool_call, custom_tool_call_output, reasoning, tool_search_call, tool_search_output, additional_tools, compaction, compaction_trigger, item_reference, mcp_list_tools, mcp_approval_request, mcp_approval_response, mcp_call, or that of a hosted tool (no other is supported)',
  },
);

export const inputItem = component(
  'ResponseInputItem',
  z.union([typed, messageItem]),
  'A message, a call of a function that the model made, what a call gave, or what the model thought.',
);

export const MAX_ITEMS = 4096;

export const responseInput = about(z.union([z.string(), z.array(inputItem).min(1).max(MAX_ITEMS)]), {
  description: 'What is answered: a text of the user, or the items of a conversation.',
  examples: ['Hello!'],
});

/** True for an item of a tool that is not known here: it is not part of the prompt. */
export function isHosted(item: { type?: string | undefined }): item is HostedItem {
  return (HOSTED_TYPES as readonly unknown[]).includes(item.type);
}

type HostedItem = z.output<typeof hostedItem>;
export type InputItem = z.output<typeof inputItem>;
export type MessageItem = z.output<typeof messageItem>;
