/** A file of the folder. */
export interface FileEntry {
  bytes: number;
  /** When it was last of use, in milliseconds since the epoch. */
  usedMs: number;
}

/** Share of the room that is left when files have to go, so that not every new one has to look for the oldest. */
const LEFT = 0.95;

/** The files of a folder, by name: which of them have to go so that they keep to their limits. */
export class FolderIndex {
  readonly #maxBytes: number;
  readonly #maxFiles: number;
  #files = new Map<string, FileEntry>();
  #bytes = 0;

  constructor({ maxBytes, maxFiles }: { maxBytes: number; maxFiles: number }) {
    this.#maxBytes = maxBytes;
    this.#maxFiles = maxFiles;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get numFiles(): number {
    return this.#files.size;
  }

  get names(): Iterable<string> {
    return this.#files.keys();
  }

  has(name: string): boolean {
    return this.#files.has(name);
  }

  add(name: string, entry: FileEntry): void {
    this.remove(name);
    this.#files.set(name, entry);
    this.#bytes += entry.bytes;
  }

  /** Marks a file as used. @returns when it was last marked; null: there is no such file */
  touch(name: string, usedMs: number): number | null {
    const entry = this.#files.get(name);
    if (entry === undefined) return null;
    const before = entry.usedMs;
    entry.usedMs = Math.max(before, usedMs);
    return before;
  }

  remove(name: string): boolean {
    const entry = this.#files.get(name);
    if (entry === undefined) return false;
    this.#files.delete(name);
    this.#bytes -= entry.bytes;
    return true;
  }

  /** Forgets all files and returns them. */
  clear(): ReadonlyMap<string, FileEntry> {
    const files = this.#files;
    this.#files = new Map();
    this.#bytes = 0;
    return files;
  }

  /** The names that have to go, the longest unused ones first; none while the files keep to the limits. */
  overflow(): string[] {
    return this.#fits({ bytes: 0, files: 0 }) ? [] : this.#goingFor({ bytes: 0, files: 0 }, Infinity).names;
  }

  /**
   * The names that have to go before another file can be written. null: it cannot be, since it is larger than all files may be, or files
   * would have to go that were of use later than it.
   */
  overflowWith({ bytes, usedMs }: FileEntry): string[] | null {
    const more = { bytes, files: 1 };
    if (this.#fits(more)) return [];
    if (bytes > this.#maxBytes || this.#maxFiles < 1) return null;
    const { names, left } = this.#goingFor(more, usedMs);
    return left.bytes + bytes <= this.#maxBytes && left.files < this.#maxFiles ? names : null;
  }

  #fits(more: { bytes: number; files: number }): boolean {
    return this.#bytes + more.bytes <= this.#maxBytes && this.#files.size + more.files <= this.#maxFiles;
  }

  /** The longest unused files, all of them unused since `untilMs`, without which there is room for more; and what is left without them. */
  #goingFor(more: { bytes: number; files: number }, untilMs: number) {
    const left = { bytes: this.#bytes, files: this.#files.size };
    const names: string[] = [];
    const older = [...this.#files].filter(([, { usedMs }]) => usedMs < untilMs);
    for (const [name, { bytes }] of older.sort(([, a], [, b]) => a.usedMs - b.usedMs)) {
      const isEnough = left.bytes + more.bytes <= LEFT * this.#maxBytes;
      if (isEnough && left.files + more.files <= LEFT * this.#maxFiles) break;
      names.push(name);
      left.bytes -= bytes;
      left.files -= 1;
    }
    return { names, left };
  }
}
