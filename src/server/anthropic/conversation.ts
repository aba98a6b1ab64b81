import { writtenJson } from '../../../base/written-json.js';
import type { ChatTextPart } from '../../../models/chat-message.js';
import type { ChatMessage } from '../../../models/chat-template.js';
import {
  type PicturePart,
  type PictureSource,
  pictureAt,
  sourceOfUrl,
} from '../../generation/pictures/picture-part.js';
import { isLeftOut, type PromptRule } from '../../prompt-rules.js';
import { ApiError } from '../web/errors.js';
import { type Warn, warnOfTypes } from '../web/warnings.js';
import {
  type AssistantBlock,
  isTold,
  type Message,
  type ReadableBlock,
  type UserBlock,
} from './schemas/blocks.js';
import type { CountTokensRequest } from './schemas/messages.js';

/** Messages for a chat template. */
export interface Conversation {
  messages: ChatMessage[];
  /** True where the answer continues the last message, which is the assistant's. */
  continuesLast: boolean;
}

/**
 * The conversation of a request. Messages of one role in a row are one, as Anthropic reads them; the results of calls
 * become messages of the tool:
 *
 *   assistant  thinking, text, tool_use a, tool_use b      assistant  reasoning_content, content, tool_calls a, b
 *   user       tool_result a, tool_result b, text    ->    tool a  tool b  user
 *
 * Blocks of tools that are not known here are left out with a warning.
 * @throws ApiError where nothing is left, or the last message cannot be gone on with.
 */
export function conversationOf(
  { system, messages }: CountTokensRequest,
  rules: ReadonlySet<PromptRule>,
  warn: Warn,
): Conversation {
  const result: ChatMessage[] = [];
  const instructions = system === undefined ? '' : systemContent(system, rules);
  if (instructions !== '') result.push({ role: 'system', content: instructions });
  warnOfTypes('Blocks', hostedTypes(messages), warn);
  const turns = turnsOf(messages);
  if (turns.length === 0) throw nothingLeft();
  for (const turn of turns) {
    // Parts of several messages are lines of their own for every template.
    const written = turn.isJoined ? joinedContent : contentOf;
    if (turn.role === 'user') result.push(...userMessages(turn.blocks, written));
    else if (turn.role === 'assistant') result.push(assistantMessage(turn.blocks));
    else result.push({ role: 'system', content: written(turn.blocks) });
  }
  const last = result.at(-1);
  if (last?.role !== 'assistant') return { messages: result, continuesLast: false };
  if (last.tool_calls !== undefined) throw withoutResults(messages.length - 1);
  if (last.content === '' && last.reasoning_content === undefined) {
    // An answer that begins with nothing starts from scratch.
    return { messages: result.slice(0, -1), continuesLast: false };
  }
  return { messages: result, continuesLast: true };
}

function nothingLeft(): ApiError {
  const message =
    "'messages' has nothing that the model reads: only blocks of tools that are not known here.";
  return new ApiError(400, message, { param: 'messages' });
}

function withoutResults(index: number): ApiError {
  const param = `messages[${index}]`;
  const message = `'${param}' ends the conversation with a tool_use; its tool_result has to follow in a message of the user.`;
  return new ApiError(400, message, { param });
}

type Turn = (
  | { role: 'user'; blocks: UserBlock[] }
  | { role: 'assistant'; blocks: AssistantBlock[] }
  | { role: 'system'; blocks: ReadableBlock[] }
) & {
  /** True where it is several messages. */
  isJoined: boolean;
};

function turnsOf(messages: readonly Message[]): Turn[] {
  const turns: Turn[] = [];
  for (const [index, { role, content }] of messages.entries()) {
    const blocks =
      typeof content === 'string'
        ? [textBlock(content)]
        : placed<(typeof content)[number]>(content, `messages[${index}].content`).filter(isTold);
    if (blocks.length === 0 && content.length > 0) continue;
    const last = turns.at(-1);
    if (last?.role === role) {
      (last.blocks as unknown[]).push(...blocks);
      last.isJoined = true;
    } else turns.push({ role, blocks: [...blocks], isJoined: false } as Turn);
  }
  return turns;
}

function hostedTypes(messages: readonly Message[]): string[] {
  return messages.flatMap(({ content }) =>
    typeof content === 'string' ? [] : content.flatMap((block) => (isTold(block) ? [] : [block.type])),
  );
}

const textBlock = (text: string) => ({ type: 'text' as const, text });

function systemContent(
  system: NonNullable<CountTokensRequest['system']>,
  rules: ReadonlySet<PromptRule>,
): Content {
  if (typeof system === 'string') return system;
  return contentOf(system.filter(({ text }) => !isLeftOut(text, rules)));
}

/** Messages of the user's blocks, in their order: text in a row is one, each result of a call is one. */
function userMessages(
  blocks: readonly UserBlock[],
  written: (said: readonly ReadableBlock[]) => Content,
): ChatMessage[] {
  const messages: ChatMessage[] = [];
  let said: ReadableBlock[] = [];
  const flush = () => {
    if (said.length > 0) messages.push({ role: 'user', content: written(said) });
    said = [];
  };
  for (const block of blocks) {
    if (block.type !== 'tool_result') {
      said.push(block);
      continue;
    }
    flush();
    messages.push({ role: 'tool', content: resultOf(block), tool_call_id: block.tool_use_id });
  }
  flush();
  return messages;
}

/** What a tool gave; pictures make it parts. */
function resultOf({ content = '', is_error }: Extract<UserBlock, { type: 'tool_result' }>): Content {
  const blocks = typeof content === 'string' ? [textBlock(content)] : content;
  const told = joinedContent(blocks);
  if (!is_error) return told;
  return typeof told === 'string' ? `Error: ${told}` : [{ type: 'text', text: 'Error: ' }, ...told];
}

function assistantMessage(blocks: readonly AssistantBlock[]): ChatMessage {
  const ofType = <Type extends AssistantBlock['type']>(type: Type) =>
    blocks.filter((block): block is Extract<AssistantBlock, { type: Type }> => block.type === type);
  const content = textOf(ofType('text'));
  const reasoning = ofType('thinking')
    .map(({ thinking }) => thinking)
    .join('');
  const calls = ofType('tool_use').map(({ id, name, input }) => ({
    id,
    type: 'function',
    function: { name, arguments: writtenJson(input) },
  }));
  return {
    role: 'assistant',
    content: content === '' && calls.length > 0 ? null : content,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
}

type Content = NonNullable<ChatMessage['content']>;

/**
 * A text, or several as parts: templates that read parts write them in their own way. Documents keep lines of their own,
 * which few templates would give them.
 */
function contentOf(blocks: readonly ReadableBlock[]): Content {
  if (blocks.some(isImage)) return blocks.map(partOf);
  if (blocks.length < 2 || blocks.some(({ type }) => type !== 'text')) return textOf(blocks);
  return blocks.map((block) => ({ type: 'text', text: blockText(block) }));
}

/** The same of several messages, or of a result: a text, if there are no pictures. */
function joinedContent(blocks: readonly ReadableBlock[]): Content {
  return blocks.some(isImage) ? blocks.map(partOf) : textOf(blocks);
}

type ImageBlock = Extract<ReadableBlock, { type: 'image' }>;
const isImage = (block: { type: string }): block is ImageBlock => block.type === 'image';

function partOf(block: ReadableBlock): ChatTextPart | PicturePart {
  if (!isImage(block)) return { type: 'text', text: blockText(block) };
  const { source, place = 'messages' } = block as ImageBlock & Partial<Placed>;
  return pictureAt(sourceOf(source, place), place);
}

/** @throws InvalidRequestError for a URL that is no address */
function sourceOf(source: ImageBlock['source'], place: string): PictureSource {
  switch (source.type) {
    case 'base64':
      return { base64: source.data };
    case 'url':
      return sourceOfUrl(source.url, place);
    case 'file':
      return { fileId: source.file_id };
  }
}

interface Placed {
  /** Place of a picture in the request. */
  place: string;
}

/** Blocks whose pictures say where they stand, those of results too. */
function placed<Block extends { type: string }>(blocks: readonly Block[], where: string): Block[] {
  return blocks.map((block, i) => {
    const place = `${where}[${i}]`;
    if (isImage(block)) return { ...block, place };
    const { content } = block as { content?: unknown };
    if (block.type !== 'tool_result' || !Array.isArray(content)) return block;
    return { ...block, content: placed(content as Block[], `${place}.content`) };
  });
}

/** The text of blocks, each on lines of its own. */
function textOf(blocks: readonly ReadableBlock[]): string {
  return blocks.map(blockText).join('\n');
}

function blockText(block: ReadableBlock): string {
  switch (block.type) {
    case 'text':
      return block.text;
    case 'document': {
      const { source, title, context } = block;
      const text =
        source.type === 'text'
          ? source.data
          : typeof source.content === 'string'
            ? source.content
            : textOf(source.content);
      return [title, context, text].filter((part) => part !== undefined).join('\n');
    }
    case 'search_result':
      return [block.title, block.source, textOf(block.content)].join('\n');
    case 'image':
      // It is a part of its own.
      return '';
  }
}
