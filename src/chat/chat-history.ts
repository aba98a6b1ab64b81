import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { readProblem, writeProblem } from '../../base/system-problem.js';

/** Entries that are kept. */
export const MAX_ENTRIES = 1000;
/** A longer message is not kept: it was pasted, and would push out all others. */
const MAX_ENTRY_LENGTH = 20_000;
/** The file is written anew, with the entries that are kept, when it has more lines than this. */
const MAX_LINES = 2 * MAX_ENTRIES;

/** SKEIN_STATE_DIR, else skein in XDG_STATE_HOME, else ~/.local/state/skein. */
export function stateDirectory(env: Readonly<Record<string, string | undefined>> = process.env): string {
  if (env.SKEIN_STATE_DIR) return env.SKEIN_STATE_DIR;
  return join(env.XDG_STATE_HOME || join(homedir(), '.local/state'), 'skein');
}

/**
 * What was typed in this chat and in those before, the newest first. In its file each entry is a line, a text in JSON;
 * the file is for its user alone. Where it cannot be read or written the chat goes on without.
 */
export class ChatHistory {
  readonly entries: string[];
  readonly #path: string | null;
  readonly #onProblem: (problem: string) => void;
  #lines: number;
  #isBroken = false;

  private constructor(path: string | null, lines: readonly string[], onProblem: (problem: string) => void) {
    this.#path = path;
    this.#lines = lines.length;
    this.#onProblem = onProblem;
    this.entries = lines.flatMap(entryOf).reverse().slice(0, MAX_ENTRIES);
  }

  /** @param path null: nothing is kept beyond this chat. @param onProblem called once, with a sentence. */
  static open(path: string | null, onProblem: (problem: string) => void): ChatHistory {
    if (path === null) return new ChatHistory(null, [], onProblem);
    try {
      const lines = readFileSync(path, 'utf8').split('\n').filter(Boolean);
      if ((statSync(path).mode & 0o077) !== 0) chmodSync(path, 0o600);
      return new ChatHistory(path, lines, onProblem);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return new ChatHistory(path, [], onProblem);
      onProblem(`The history ${path} cannot be read: ${readProblem(error)}`);
      return new ChatHistory(null, [], onProblem);
    }
  }

  add(entry: string): void {
    if (entry.trim() === '' || entry === this.entries[0]) return;
    this.entries.unshift(entry);
    this.entries.length = Math.min(this.entries.length, MAX_ENTRIES);
    if (this.#path === null || this.#isBroken || entry.length > MAX_ENTRY_LENGTH) return;
    try {
      mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
      if (this.#lines >= MAX_LINES) this.#rewrite(this.#path);
      else appendFileSync(this.#path, `${JSON.stringify(entry)}\n`, { mode: 0o600 });
      this.#lines++;
    } catch (error) {
      this.#isBroken = true;
      this.#onProblem(`The history ${this.#path} cannot be written: ${writeProblem(error)}`);
    }
  }

  #rewrite(path: string): void {
    const kept = this.entries.filter((entry) => entry.length <= MAX_ENTRY_LENGTH).reverse();
    const aside = `${path}.${process.pid}`;
    writeFileSync(aside, kept.map((entry) => `${JSON.stringify(entry)}\n`).join(''), { mode: 0o600 });
    renameSync(aside, path);
    this.#lines = kept.length - 1;
  }
}

/** A line that is none of ours, such as one that was torn, counts as nothing. */
function entryOf(line: string): string[] {
  try {
    const entry: unknown = JSON.parse(line);
    return typeof entry === 'string' ? [entry] : [];
  } catch {
    return [];
  }
}
