import { PICTURE_TYPES } from '../../../../../models/images/files/picture-kind.js';
import { type Attachment, base64Length } from './attachments/attachment.js';
import {
  asTree,
  type StoredConversation,
  type StoredMessage,
  type StoredTurn,
  type TurnsConversation,
} from './stored-conversation.js';
import type { ToolCall } from './tools/tool-call.js';

/** The file of conversations that are exported. It is written in parts, since it may be longer than a string can be. */
export async function exportedFile(
  conversations: AsyncIterable<StoredConversation> | Iterable<StoredConversation>,
): Promise<Blob> {
  const parts: Blob[] = [];
  for await (const one of conversations) {
    parts.push(new Blob([parts.length === 0 ? '\n' : ',\n', JSON.stringify(one, null, 1)]));
  }
  const head = '{\n "format": "skein-conversations",\n "version": 2,\n "conversations": [';
  return new Blob([head, ...parts, '\n ]\n}'], { type: 'application/json' });
}

/**
 * Conversations of an exported file, also of one that was made before there were branches.
 *
 * @param nowMs none has changed later than this: a date ahead would keep it above all others for ever
 * @throws Error with a sentence where it is none
 */
export function imported(text: string, nowMs: number): StoredConversation[] {
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch {
    throw new Error('This file is not JSON.');
  }
  const { format, conversations } = (file ?? {}) as { format?: unknown; conversations?: unknown };
  if (format !== 'skein-conversations' || !Array.isArray(conversations)) {
    throw new Error('This file has no conversations that this page has exported.');
  }
  return conversations.map((one, index) => {
    if (!isConversation(one)) throw new Error(`Conversation ${index + 1} of this file cannot be read.`);
    const { id, title, model, changedMs, messages, leaf, contextTokens } = asTree(one);
    return {
      ...{ id, title, model, changedMs: Math.min(changedMs, nowMs) },
      ...{ messages: messages.map(knownMessage), leaf },
      ...(contextTokens === undefined ? {} : { contextTokens }),
    };
  });
}

function isConversation(value: unknown): value is StoredConversation | TurnsConversation {
  const known = (value ?? {}) as Record<string, unknown>;
  const { id, title, model, changedMs, turns, messages, leaf, contextTokens } = known;
  const isNamed = typeof id === 'string' && id !== '' && typeof title === 'string';
  const isOfModel = model === null || typeof model === 'string';
  const isCounted = isCount(changedMs) && (contextTokens === undefined || isCount(contextTokens));
  const isSaid = turns === undefined ? isTree(messages, leaf) : isFilled(turns) && turns.every(isTurn);
  return isNamed && isOfModel && isCounted && isSaid;
}

const isFilled = (value: unknown): value is unknown[] => Array.isArray(value) && value.length > 0;

/** Messages of which each has its parent in front of it, a question an answer or none, and an answer a question. */
function isTree(messages: unknown, leaf: unknown): boolean {
  if (!isFilled(messages)) return false;
  const roles = new Map<unknown, unknown>();
  for (const message of messages) {
    if (!isMessage(message) || roles.has(message.id)) return false;
    const { id, parent, role } = message;
    const before = parent === null ? 'assistant' : roles.get(parent);
    if (before !== (role === 'user' ? 'assistant' : 'user')) return false;
    roles.set(id, role);
  }
  return roles.has(leaf);
}

function isMessage(value: unknown): value is StoredMessage {
  const known = (value ?? {}) as Record<string, unknown>;
  const { id, parent, role, text, reasoning = '', reasoningMs = 0, attachments = [], calls = [] } = known;
  const isText = [id, text, reasoning].every((one) => typeof one === 'string') && id !== '';
  const isPlaced =
    (parent === null || typeof parent === 'string') && (role === 'user' || role === 'assistant');
  const isCalled = Array.isArray(calls) && calls.every(isCall);
  const isAttached = Array.isArray(attachments) && attachments.every(isAttachment);
  return isText && isPlaced && isCount(reasoningMs) && isAttached && isCalled;
}

function isCall(value: unknown): value is ToolCall {
  const { server, name, arguments: args, output, error, isDenied } = (value ?? {}) as Record<string, unknown>;
  const isNamed = [server, name, args].every((one) => typeof one === 'string');
  const isEnded = [output, error].every((one) => one === null || typeof one === 'string');
  return isNamed && isEnded && typeof isDenied === 'boolean';
}

function isTurn(value: unknown): value is StoredTurn {
  const { question, answer, reasoning, attachments = [] } = (value ?? {}) as Record<string, unknown>;
  const isText = [question, answer, reasoning].every((text) => typeof text === 'string');
  return isText && Array.isArray(attachments) && attachments.every(isAttachment);
}

/** A file that may be shown and sent: a picture of one of the four types, whose bytes are base64, or a text. */
function isAttachment(value: unknown): value is Attachment {
  const { kind, id, name, bytes, content, ...more } = (value ?? {}) as Record<string, unknown>;
  const isNamed = [id, name].every((text) => typeof text === 'string' && text !== '');
  const hasContent = content === null || typeof content === 'string';
  if (!isNamed || !hasContent || !isCount(bytes)) return false;
  if (kind === 'text') {
    const { part, characters, tokens } = more;
    const isWhole = content === null || (content as string).length === characters;
    return typeof part === 'string' && isCount(characters) && isWhole && (tokens === null || isCount(tokens));
  }
  const { type, width, height } = more;
  const isShown = Object.values(PICTURE_TYPES).some((known) => known === type);
  const isWhole = content === null || isBase64Of(content as string, bytes as number);
  return kind === 'picture' && isShown && isWhole && isCount(width) && isCount(height);
}

const isBase64Of = (text: string, bytes: number) =>
  text.length === base64Length(bytes) && /^[A-Za-z0-9+/]*={0,2}$/.test(text);

function knownMessage(message: StoredMessage): StoredMessage {
  const { id, parent, role, text, attachments, reasoning, reasoningMs, calls = [] } = message;
  const files = attachments?.map(knownAttachment) ?? [];
  return {
    ...{ id, parent, role, text },
    ...(files.length === 0 ? {} : { attachments: files }),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(reasoningMs === undefined ? {} : { reasoningMs }),
    ...(calls.length === 0 ? {} : { calls: calls.map(knownCall) }),
  };
}

function knownCall({ server, name, arguments: args, output, error, isDenied }: ToolCall): ToolCall {
  return { server, name, arguments: args, output, error, isDenied };
}

function knownAttachment(attachment: Attachment): Attachment {
  const { id, name, bytes } = attachment;
  if (attachment.kind === 'text') {
    const { part, characters, tokens, content } = attachment;
    return { kind: 'text', ...{ id, name, bytes, part, characters, tokens, content } };
  }
  const { type, width, height, content } = attachment;
  return { kind: 'picture', ...{ id, name, bytes, type, width, height, content } };
}

const isCount = (value: unknown) => Number.isFinite(value) && (value as number) >= 0;
