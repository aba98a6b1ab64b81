import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import * as z from 'zod';
import { SkeinError } from '../../base/skein-error.js';
import { writeProblem } from '../../base/system-problem.js';
import type { ChatMessage } from '../../models/chat-message.js';
import type { SamplingSettings } from '../asking/sampling-settings.js';
import { SAMPLING_SETTINGS } from '../asking/sampling-settings.js';
import { fileProblem } from '../errors/file-problem.js';
import { InvalidRequestError } from '../errors/request-errors.js';
import { loadedMessages, SAVED_CHAT_KIND, SAVED_CHAT_VERSION } from '../library/chat/saved-chat.js';
import { Conversation } from './conversation.js';

/** An error for a conversation that cannot be saved or loaded. */
export class ChatFileError extends SkeinError {
  override name = 'ChatFileError';
  override readonly code = 'SKEIN_CHAT_FILE';
}

/** Longest file of a chat. */
export const MAX_CHAT_BYTES = 4 * 2 ** 20;

const schema = z.object({
  kind: z.literal(SAVED_CHAT_KIND),
  version: z.literal(SAVED_CHAT_VERSION),
  model: z.string(),
  settings: z.record(z.string(), z.union([z.number(), z.array(z.string())])).catch({}),
  asked: z.object({ model: z.string(), url: z.string() }).partial().optional().catch(undefined),
});

/** What was asked: a model as --model takes it, or a server and its model. */
export interface AskedModel {
  model?: string;
  url?: string;
}

export interface SavedChat {
  /** Name of the model that answered. */
  model: string;
  settings: SamplingSettings;
  conversation: Conversation;
  /** How to come to the same model again; absent: the file does not say. */
  asked?: AskedModel | undefined;
}

/**
 * Writes a conversation as JSON; an existing file is replaced only where it is a saved chat too. @throws ChatFileError.
 */
export function saveChat(path: string, chat: SavedChat): void {
  if (existsSync(path) && !isChat(path)) {
    throw new ChatFileError(`${path} is there, and no saved chat; name another file.`);
  }
  writeChat(path, chatText(chat));
}

/** A chat as its file has it. */
export function chatText({ model, settings, conversation, asked }: SavedChat): string {
  const head = { kind: SAVED_CHAT_KIND, version: SAVED_CHAT_VERSION, model, settings };
  return `${JSON.stringify({ ...head, ...(asked && { asked }), messages: conversation.whole }, null, 2)}\n`;
}

/** Writes the file of a chat, whole or not at all. @throws ChatFileError */
export function writeChat(path: string, text: string): void {
  const aside = `${path}.${process.pid}.tmp`;
  try {
    writeFileSync(aside, text, { mode: 0o600 });
    renameSync(aside, path);
  } catch (error) {
    rmSync(aside, { force: true });
    throw new ChatFileError(`${path} cannot be written: ${writeProblem(error)}`);
  }
}

/** @throws ChatFileError. */
export function loadChat(path: string): SavedChat {
  let text: string;
  try {
    const { size } = statSync(path);
    if (size > MAX_CHAT_BYTES)
      throw new ChatFileError(`${path} has ${size} bytes, and a saved chat ${MAX_CHAT_BYTES} at most.`);
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof ChatFileError) throw error;
    throw new ChatFileError(`${path} cannot be read: ${fileProblem(error)}`);
  }
  const chat = parsed(text);
  if (chat === null) throw new ChatFileError(`${path} is no saved chat of /save.`);
  const { model, settings, asked } = chat.head;
  const messages = messagesOf(path, chat.value);
  const known = new Set(SAMPLING_SETTINGS.map(({ field }) => field));
  const conversation = new Conversation(messages[0]?.role === 'system' ? textOf(messages[0]) : null);
  conversation.turns.push(...messages.filter(({ role }) => role !== 'system'));
  const kept = Object.entries(settings).filter(([field]) => known.has(field));
  return { model, settings: Object.fromEntries(kept), conversation, asked: asked as AskedModel | undefined };
}

function textOf({ content }: ChatMessage): string {
  return typeof content === 'string' ? content : (content ?? []).map(({ text = '' }) => text).join('\n');
}

function messagesOf(path: string, value: unknown): ChatMessage[] {
  try {
    return loadedMessages(value);
  } catch (error) {
    if (error instanceof InvalidRequestError)
      throw new ChatFileError(`${path} cannot be loaded: ${error.message}`);
    throw error;
  }
}

function isChat(path: string): boolean {
  try {
    return parsed(readFileSync(path, 'utf8')) !== null;
  } catch {
    return false;
  }
}

function parsed(text: string): { head: z.output<typeof schema>; value: unknown } | null {
  try {
    const value: unknown = JSON.parse(text);
    return { head: schema.parse(value), value };
  } catch {
    return null;
  }
}
