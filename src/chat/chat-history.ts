import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { homeFolder } from '../../base/home-folder.js';
import { readProblem, writeProblem } from '../../base/system-problem.js';

/** Most entries kept. */
const MAX_ENTRIES = 1000;
/** Longest entry kept, in UTF-16 units: a longer one was pasted, and would push out all others. */
const MAX_ENTRY_LENGTH = 20_000;
/** Most lines of the file; with more it is rewritten with the entries that are kept. */
const MAX_LINES = 2 * MAX_ENTRIES;

/** Folder for state: SKEIN_STATE_DIR, else skein in XDG_STATE_HOME, else ~/.local/state/skein. */
export function stateDirectory(env: Readonly<Record<string, string | undefined>> = process.env): string {
  if (env.SKEIN_STATE_DIR) return env.SKEIN_STATE_DIR;
  return join(env.XDG_STATE_HOME || join(homeFolder(), '.local/state'), 'skein');
}

/**
 * Lines typed in this chat and earlier ones, the newest first. Each entry is a line of the file, a text in
 * JSON; only its user can read the file. Where it cannot be read or written the chat continues without it.
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

  /**
   * @param path file of the history; null: nothing is kept beyond this chat. @param onProblem called once, with a
   * sentence.
   */
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

/** The entry in a line, as a list; empty for an invalid line, such as a torn one. */
function entryOf(line: string): string[] {
  try {
    const entry: unknown = JSON.parse(line);
    return typeof entry === 'string' ? [entry] : [];
  } catch {
    return [];
  }
}
