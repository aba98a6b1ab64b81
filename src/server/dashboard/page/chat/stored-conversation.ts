import { type Attachment, contentLength } from './attachments/attachment.js';

/** A question and its answer as they are kept. */
export interface StoredTurn {
  question: string;
  /** Files of the question; absent: none. */
  attachments?: readonly Attachment[];
  answer: string;
  reasoning: string;
}

/** A conversation as it is kept in the browser, exported and imported. */
export interface StoredConversation {
  id: string;
  title: string;
  model: string | null;
  /** When it last changed, in milliseconds since 1970. */
  changedMs: number;
  turns: readonly StoredTurn[];
  /** Tokens that it takes in the model's context; absent: not known. */
  contextTokens?: number;
}

const LONGEST_TITLE = 60;

/** An id of a conversation or of a file, that no other has. crypto.randomUUID needs HTTPS, which a server in a local network lacks. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Title of a conversation: the one that the reader gave to what is stored of it, else the beginning of its first question. */
export function titleIn(turns: readonly StoredTurn[], stored: StoredConversation | null): string {
  const isGiven = stored !== null && stored.title !== titleOf(stored.turns[0]!);
  return isGiven ? stored.title : titleOf(turns[0]!);
}

/** The beginning of a question, or the name of its first file. */
export function titleOf({ question, attachments }: Pick<StoredTurn, 'question' | 'attachments'>): string {
  const line = question.trim().replace(/\s+/g, ' ') || (attachments?.[0]?.name ?? '');
  return line.length <= LONGEST_TITLE ? line : `${line.slice(0, LONGEST_TITLE - 1)}…`;
}

export const filesOf = ({ turns }: Pick<StoredConversation, 'turns'>): Attachment[] =>
  turns.flatMap(({ attachments }) => attachments ?? []);

/** Characters of the contents of all their files. */
export function lengthOfFiles(conversations: readonly StoredConversation[]): number {
  return conversations.flatMap(filesOf).reduce((sum, file) => sum + contentLength(file), 0);
}

/** The conversation with other contents of its files. */
export function withContents(
  conversation: StoredConversation,
  contentOf: (file: Attachment) => string | null,
): StoredConversation {
  const turns = conversation.turns.map(({ attachments, ...turn }) =>
    attachments === undefined
      ? turn
      : { ...turn, attachments: attachments.map((file) => ({ ...file, content: contentOf(file) })) },
  );
  return { ...conversation, turns };
}
