import type { StoredConversation, StoredTurn } from './conversation-store.js';

/** Text of an exported file. */
export function exported(conversations: readonly StoredConversation[]): string {
  return JSON.stringify({ format: 'skein-conversations', version: 1, conversations }, null, 1);
}

/**
 * Conversations of an exported file.
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
    const { id, title, model, changedMs, turns, contextTokens } = one;
    return {
      ...{ id, title, model, changedMs: Math.min(changedMs, nowMs) },
      turns: turns.map(({ question, answer, reasoning }) => ({ question, answer, reasoning })),
      ...(contextTokens === undefined ? {} : { contextTokens }),
    };
  });
}

function isConversation(value: unknown): value is StoredConversation {
  const { id, title, model, changedMs, turns, contextTokens } = (value ?? {}) as Record<string, unknown>;
  const isNamed = typeof id === 'string' && id !== '' && typeof title === 'string';
  const isOfModel = model === null || typeof model === 'string';
  const isCounted = isCount(changedMs) && (contextTokens === undefined || isCount(contextTokens));
  return isNamed && isOfModel && isCounted && Array.isArray(turns) && turns.length > 0 && turns.every(isTurn);
}

function isTurn(value: unknown): value is StoredTurn {
  const { question, answer, reasoning } = (value ?? {}) as Record<string, unknown>;
  return [question, answer, reasoning].every((text) => typeof text === 'string');
}

const isCount = (value: unknown) => Number.isFinite(value) && (value as number) >= 0;
