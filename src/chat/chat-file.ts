import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import * as z from 'zod';
import { SkeinError } from '../../base/skein-error.js';
import { writeProblem } from '../../base/system-problem.js';
import type { SamplingSettings } from '../asking/sampling-settings.js';
import { SAMPLING_SETTINGS } from '../asking/sampling-settings.js';
import { fileProblem } from '../errors/file-problem.js';
import { SAVED_CHAT_KIND, SAVED_CHAT_VERSION } from '../library/chat/saved-chat.js';
import { Conversation } from './conversation.js';

/** An error for a conversation that cannot be saved or loaded. */
export class ChatFileError extends SkeinError {
  override name = 'ChatFileError';
  override readonly code = 'SKEIN_CHAT_FILE';
}

const schema = z.object({
  kind: z.literal(SAVED_CHAT_KIND),
  version: z.literal(SAVED_CHAT_VERSION),
  model: z.string(),
  settings: z.record(z.string(), z.union([z.number(), z.array(z.string())])),
  messages: z.array(z.object({ role: z.enum(['system', 'user', 'assistant']), content: z.string() })),
});

export interface SavedChat {
  model: string;
  settings: SamplingSettings;
  conversation: Conversation;
}

/**
 * Writes a conversation as JSON; an existing file is replaced only where it is a saved chat too. @throws ChatFileError.
 */
export function saveChat(path: string, { model, settings, conversation }: SavedChat): void {
  if (existsSync(path) && !isChat(path)) {
    throw new ChatFileError(`${path} is there, and no saved chat; name another file.`);
  }
  const { messages } = conversation;
  const text = JSON.stringify(
    { kind: SAVED_CHAT_KIND, version: SAVED_CHAT_VERSION, model, settings, messages },
    null,
    2,
  );
  const aside = `${path}.${process.pid}.tmp`;
  try {
    writeFileSync(aside, `${text}\n`, { mode: 0o600 });
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
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new ChatFileError(`${path} cannot be read: ${fileProblem(error)}`);
  }
  const chat = parsed(text);
  if (chat === null) throw new ChatFileError(`${path} is no saved chat of /save.`);
  const { model, settings, messages } = chat;
  const known = new Set(SAMPLING_SETTINGS.map(({ field }) => field));
  const conversation = new Conversation(messages[0]?.role === 'system' ? messages[0].content : null);
  conversation.turns.push(...messages.filter(({ role }) => role !== 'system'));
  const kept = Object.entries(settings).filter(([field]) => known.has(field));
  return { model, settings: Object.fromEntries(kept), conversation };
}

function isChat(path: string): boolean {
  try {
    return parsed(readFileSync(path, 'utf8')) !== null;
  } catch {
    return false;
  }
}

function parsed(text: string): z.output<typeof schema> | null {
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}
