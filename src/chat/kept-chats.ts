import { randomInt } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { closestName } from '../../base/did-you-mean.js';
import { writeProblem } from '../../base/system-problem.js';
import { plainLine } from '../terminal/plain-text.js';
import { ChatFileError, chatText, loadChat, MAX_CHAT_BYTES, type SavedChat, writeChat } from './chat-file.js';

/** Most conversations that are kept; the oldest make room. */
export const MAX_KEPT_CHATS = 200;
const ID_LENGTH = 5;
/** Letters and digits that are not taken for each other. */
const ID_LETTERS = 'abcdefghjkmnpqrstuvwxyz23456789';
const FILE = new RegExp(`^([${ID_LETTERS}]{${ID_LENGTH}})\\.json$`);
const MAX_TITLE = 48;

interface Stamp {
  id: string;
  changedMs: number;
}

/** A conversation of the folder, for a list. */
export interface KeptChat extends Stamp {
  model: string;
  questions: number;
  /** Its first question, shortened. */
  title: string;
}

/**
 * Conversations in a folder, a file each, which only their user can read. The current chat is written after
 * each answer. Where another process has written the file since, this one continues in a file of its own, so
 * that nothing is lost.
 */
export class KeptChats {
  readonly #folder: string;
  readonly #onProblem: (problem: string) => void;
  #id: string | null = null;
  /** When the file of the chat was last read or written here. */
  #knownMs = 0;
  #isBroken = false;

  /** @param onProblem called once, with a sentence, where nothing can be kept */
  constructor(folder: string, onProblem: (problem: string) => void) {
    this.#folder = folder;
    this.#onProblem = onProblem;
  }

  /** Id of the chat that is going on; null: nothing of it is kept yet. */
  get id(): string | null {
    return this.#id;
  }

  /** The chats that are kept, the newest first. @param most how many of them */
  list(most = MAX_KEPT_CHATS): KeptChat[] {
    return this.#stamps()
      .slice(0, most)
      .flatMap((stamp) => {
        try {
          const { model, conversation } = loadChat(this.#path(stamp.id));
          const questions = conversation.turns.filter(({ role }) => role === 'user');
          const first = questions[0]?.content;
          const title = plainLine(typeof first === 'string' ? first : '', MAX_TITLE);
          return [{ ...stamp, model, questions: questions.length, title }];
        } catch {
          return []; // Some other file, or one that was deleted meanwhile.
        }
      });
  }

  /** Reads a chat, to be continued. @param id absent: the newest @throws ChatFileError */
  resume(id?: string): SavedChat {
    const stamps = this.#stamps();
    const wanted = id ?? stamps[0]?.id;
    if (wanted === undefined)
      throw new ChatFileError(`No chat is kept in ${this.#folder} yet, so there is none to resume.`);
    const found = stamps.find((stamp) => stamp.id === wanted);
    if (found === undefined) throw this.#unknown(wanted, stamps);
    const chat = loadChat(this.#path(found.id));
    this.#id = found.id;
    this.#knownMs = found.changedMs;
    return chat;
  }

  /** Begins a chat of its own: the one so far stays as it is. */
  begin(): void {
    this.#id = null;
  }

  /** Writes the chat that is going on. One that is too long stays as it was written last. */
  keep(chat: SavedChat): void {
    if (this.#isBroken) return;
    const text = chatText(chat);
    const bytes = Buffer.byteLength(text);
    if (bytes > MAX_CHAT_BYTES) {
      this.#stop(`This chat has ${bytes} bytes and is not kept further: ${MAX_CHAT_BYTES} are the most.`);
      return;
    }
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      if (this.#id === null || this.#changedMs(this.#id) !== this.#knownMs) this.#id = this.#newId();
      writeChat(this.#path(this.#id), text);
      this.#knownMs = this.#changedMs(this.#id);
    } catch (error) {
      this.#stop(
        error instanceof ChatFileError
          ? error.message
          : `${this.#folder} cannot be written: ${writeProblem(error)}`,
      );
    }
  }

  /** Deletes a chat. @throws ChatFileError where it is not there */
  forget(id: string): void {
    const stamps = this.#stamps();
    if (!stamps.some((stamp) => stamp.id === id)) throw this.#unknown(id, stamps);
    rmSync(this.#path(id), { force: true });
    if (id === this.#id) this.#id = null;
  }

  #stop(problem: string): void {
    this.#isBroken = true;
    this.#onProblem(problem);
  }

  #unknown(id: string, stamps: readonly Stamp[]): ChatFileError {
    const meant = closestName(
      id,
      stamps.map((stamp) => stamp.id),
    );
    const hint = meant === null ? 'skein chat --list shows those that are kept.' : `did you mean ${meant}?`;
    return new ChatFileError(`There is no kept chat ${plainLine(id, MAX_TITLE)}; ${hint}`);
  }

  /** An id that no file has, with room for its file. */
  #newId(): string {
    const stamps = this.#stamps();
    for (const { id } of stamps.slice(MAX_KEPT_CHATS - 1)) rmSync(this.#path(id), { force: true });
    for (;;) {
      const letters = Array.from({ length: ID_LENGTH }, () => ID_LETTERS[randomInt(ID_LETTERS.length)]);
      const id = letters.join('');
      if (!stamps.some((stamp) => stamp.id === id)) return id;
    }
  }

  /** Ids with times, the newest first. */
  #stamps(): Stamp[] {
    let names: string[];
    try {
      names = readdirSync(this.#folder);
    } catch {
      return [];
    }
    const ids = names.flatMap((name) => FILE.exec(name)?.[1] ?? []);
    const stamps = ids.map((id) => ({ id, changedMs: this.#changedMs(id) }));
    return stamps.sort((one, other) => other.changedMs - one.changedMs || (one.id < other.id ? -1 : 1));
  }

  #changedMs(id: string): number {
    return statSync(this.#path(id), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  }

  #path(id: string): string {
    return join(this.#folder, `${id}.json`);
  }
}

/** Chats as lines of a list. */
export function keptLines(chats: readonly KeptChat[]): string[] {
  const width = Math.max(0, ...chats.map(({ model }) => model.length));
  return chats.map(({ id, changedMs, model, questions, title }) => {
    const day = new Date(changedMs).toISOString().slice(0, 16).replace('T', ' ');
    return `${id}  ${day}  ${model.padEnd(width)}  ${String(questions).padStart(3)}  ${title}`;
  });
}
