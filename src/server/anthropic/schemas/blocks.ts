import * as z from 'zod';
import { about, component, ignored, optional } from '../../../schemas/fields.js';
import { functionName } from '../../answering/schemas/tools.js';

const cached = () => ignored('Accepted; prompts are found in the cache by their content.');

const imageSource = z.discriminatedUnion(
  'type',
  [
    z.object({
      type: z.literal('base64'),
      media_type: ignored('Accepted; a file itself names its kind.'),
      data: about(z.string(), 'The file (JPEG, PNG, WebP or GIF) in base64.'),
    }),
    z.object({
      type: z.literal('url'),
      url: about(z.string(), 'An https: address, where --allow-image-urls is given.'),
    }),
    z.object({
      type: z.literal('file'),
      file_id: about(z.string(), 'The id of a picture that was stored with POST /v1/files.'),
    }),
  ],
  { error: 'expected a source of type base64, url or file' },
);

const imageBlock = z.object({
  type: z.literal('image'),
  source: about(imageSource, 'The picture.'),
  cache_control: cached(),
});

const textBlock = z.object({
  type: z.literal('text'),
  text: about(z.string(), 'The text. Where it spells a special token it stays text.'),
  citations: ignored(),
  cache_control: cached(),
});

/** Citations that a source may ask for: the answer has none. */
const citations = about(
  z
    .object({ enabled: about(z.boolean().nullish(), 'Not supported: true.') })
    .nullish()
    .superRefine((value, context) => {
      if (!value?.enabled) return;
      const params = { refused: true };
      context.addIssue({ code: 'custom', message: 'citations', params, continue: false });
    }),
  'Accepted where it asks for none.',
);

const documentSource = z.discriminatedUnion(
  'type',
  [
    z.object({
      type: z.literal('text'),
      media_type: ignored(),
      data: about(z.string(), 'The text of the document.'),
    }),
    z.object({
      type: z.literal('content'),
      content: about(z.union([z.string(), z.array(textBlock)]), 'The text of the document, or parts of it.'),
    }),
  ],
  {
    error:
      'expected a source of type text or content: the model reads text (no other kind of source is supported)',
  },
);

const documentBlock = z.object({
  type: z.literal('document'),
  source: about(documentSource, 'The text.'),
  title: optional(z.string(), 'Stands before the text.'),
  context: optional(z.string(), 'Stands between title and text.'),
  citations,
  cache_control: cached(),
});

const searchResult = z.object({
  type: z.literal('search_result'),
  source: about(z.string(), 'Where it was found; stands before the text.'),
  title: about(z.string(), 'Stands before the text.'),
  content: about(z.array(textBlock), 'The text.'),
  citations,
  cache_control: cached(),
});

/** Blocks that the content of a message can be made of. */
const readable = [textBlock, documentBlock, searchResult, imageBlock] as const;
const readableBlock = z.discriminatedUnion('type', readable, {
  error:
    'expected a block of type text, image, document or search_result (no other kind of block is supported)',
});

const toolResult = z.object({
  type: z.literal('tool_result'),
  tool_use_id: about(z.string(), 'Which call it answers.'),
  content: optional(z.union([z.string(), z.array(readableBlock)]), 'What the tool gave.'),
  is_error: optional(z.boolean(), "True: the model is told by an 'Error: ' before the content."),
  cache_control: cached(),
});

const toolUse = z.object({
  type: z.literal('tool_use'),
  id: about(z.string(), 'What its result names.'),
  name: functionName,
  input: about(z.record(z.string(), z.unknown()), 'The arguments, as they came.'),
  caller: ignored(),
  cache_control: cached(),
});

const thinking = z.object({
  type: z.literal('thinking'),
  thinking: about(z.string(), 'What the model thought; reaches the chat template, as reasoning_content.'),
  signature: ignored('Accepted; it is not checked.'),
});

const redactedThinking = z.object({
  type: z.literal('redacted_thinking'),
  data: ignored('Accepted; it is not part of the prompt.'),
});

/** Types of blocks of tools that are not known here: calls of them, and their results. */
const HOSTED_TYPES = [
  'server_tool_use',
  'web_search_tool_result',
  'web_fetch_tool_result',
  'code_execution_tool_result',
  'bash_code_execution_tool_result',
  'text_editor_code_execution_tool_result',
  'tool_search_tool_result',
  'advisor_tool_result',
  'mcp_tool_use',
  'mcp_tool_result',
  'mcp_tool_listing',
  'container_upload',
] as const;

const hosted = z.object({
  type: about(
    z.enum(HOSTED_TYPES),
    "A block of a tool that Anthropic's servers know. It is not part of the prompt; the header X-Skein-Warning says so.",
  ),
});

const userBlock = z.discriminatedUnion('type', [...readable, toolResult, hosted], {
  error:
    'expected a block of type text, image, document, search_result or tool_result, or that of a hosted tool (no other kind of block is supported)',
});
const assistantBlock = z.discriminatedUnion(
  'type',
  [textBlock, thinking, redactedThinking, toolUse, hosted],
  {
    error:
      'expected a block of type text, thinking, redacted_thinking or tool_use, or that of a hosted tool (no other kind of block is supported)',
  },
);

const either = <T extends z.ZodType>(block: T) =>
  z.union([z.string(), z.array(block)], { error: 'expected a string or a list of blocks' });

/** Text, or blocks of text. */
export const systemText = () => either(textBlock);

export const message = component(
  'Message',
  z.discriminatedUnion('role', [
    z.object({ role: z.literal('user'), content: about(either(userBlock), 'Text, or blocks.') }),
    z.object({ role: z.literal('assistant'), content: about(either(assistantBlock), 'Text, or blocks.') }),
    z.object({ role: z.literal('system'), content: about(systemText(), 'Text, or blocks of text.') }),
  ]),
  "A message of the conversation, in Anthropic's form.",
);

/** False for a block of a tool that is not known here: it is not part of the prompt. */
export function isTold<Block extends { type: string }>(block: Block): block is Exclude<Block, HostedBlock> {
  return !(HOSTED_TYPES as readonly string[]).includes(block.type);
}

type HostedBlock = z.output<typeof hosted>;
export type Message = z.output<typeof message>;
export type UserBlock = Exclude<z.output<typeof userBlock>, HostedBlock>;
export type AssistantBlock = Exclude<z.output<typeof assistantBlock>, HostedBlock>;
export type ReadableBlock = z.output<typeof readableBlock>;
