import { type Attachment, contentLength } from './attachments/attachment.js';
import { MessageTree } from './message-tree.js';
import type { ToolCall } from './tools/tool-call.js';

/**
 * A message as it is kept. Messages are a tree: a question that was changed, and an answer that was made again, stand next to what was there before.
 */
export interface StoredMessage {
  /** No other message of the conversation has it. */
  id: string;
  /** The message before it; null: it begins the conversation. */
  parent: string | null;
  role: 'user' | 'assistant';
  text: string;
  /** Files of a question; absent: none. */
  attachments?: readonly Attachment[];
  /** What the model thought before its answer; absent: nothing. */
  reasoning?: string;
  /** Milliseconds of that; absent: not known. */
  reasoningMs?: number;
  /** Calls of tools in an answer; absent: none. */
  calls?: readonly ToolCall[];
}

/** A conversation as it is kept in the browser, exported and imported. */
export interface StoredConversation {
  id: string;
  title: string;
  model: string | null;
  /** When it last changed, in milliseconds since 1970. */
  changedMs: number;
  /** Each after its parent, the versions of a message in the order in which they were made. */
  messages: readonly StoredMessage[];
  /** The last message of the branch that the page shows. */
  leaf: string;
  /** Tokens that it takes in the model's context; absent: not known. */
  contextTokens?: number;
}

/** A question and its answer, as conversations without branches had them. */
export interface StoredTurn {
  question: string;
  attachments?: readonly Attachment[];
  answer: string;
  reasoning: string;
}

/** A conversation as it was kept before there were branches. */
export type TurnsConversation = Omit<StoredConversation, 'messages' | 'leaf'> & {
  turns: readonly StoredTurn[];
};

const LONGEST_TITLE = 60;

/** An id of a conversation, a message or a file, that no other has. crypto.randomUUID needs HTTPS, which a server in a local network lacks. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** What is kept, in the form of today. */
export function asTree(kept: StoredConversation | TurnsConversation): StoredConversation {
  if (!('turns' in kept)) return kept;
  const { turns, ...more } = kept;
  const messages: StoredMessage[] = [];
  for (const [index, { question, attachments, answer, reasoning }] of turns.entries()) {
    const parent = messages.at(-1)?.id ?? null;
    const id = `q${index}`;
    messages.push({ id, parent, role: 'user', text: question, ...(attachments && { attachments }) });
    const thought = reasoning === '' ? {} : { reasoning };
    messages.push({ id: `a${index}`, parent: id, role: 'assistant', text: answer, ...thought });
  }
  return { ...more, messages, leaf: messages.at(-1)!.id };
}

type Branch = Pick<StoredConversation, 'messages' | 'leaf'>;

/** Title of a conversation: the one that the reader gave to what is stored of it, else the beginning of the first question of its branch. */
export function titleIn(shown: Branch, stored: StoredConversation | null): string {
  const isGiven = stored !== null && stored.title !== titleOf(firstOf(stored));
  return isGiven ? stored.title : titleOf(firstOf(shown));
}

const firstOf = ({ messages, leaf }: Branch): StoredMessage => new MessageTree(messages).path(leaf)[0]!;

/** The beginning of a question, or the name of its first file. */
export function titleOf({ text, attachments }: Pick<StoredMessage, 'text' | 'attachments'>): string {
  const line = text.trim().replace(/\s+/g, ' ') || (attachments?.[0]?.name ?? '');
  return line.length <= LONGEST_TITLE ? line : `${line.slice(0, LONGEST_TITLE - 1)}…`;
}

/** Its files, each once: the versions of a question share them. */
export function filesOf({ messages }: Pick<StoredConversation, 'messages'>): Attachment[] {
  const all = messages.flatMap(({ attachments }) => attachments ?? []);
  return [...new Map(all.map((file) => [file.id, file])).values()];
}

/** Characters of the contents of all their files. */
export function lengthOfFiles(conversations: readonly StoredConversation[]): number {
  return conversations.flatMap(filesOf).reduce((sum, file) => sum + contentLength(file), 0);
}

/** The conversation with other contents of its files. */
export function withContents(
  conversation: StoredConversation,
  contentOf: (file: Attachment) => string | null,
): StoredConversation {
  const messages = conversation.messages.map(({ attachments, ...message }) =>
    attachments === undefined
      ? message
      : { ...message, attachments: attachments.map((file) => ({ ...file, content: contentOf(file) })) },
  );
  return { ...conversation, messages };
}
