/**
 * A text as `encrypted_content`, which clients that keep no responses send back. It is the client's own
 * conversation, so it is only encoded, after a mark of its kind.
 */
class Seal {
  readonly #mark: string;

  constructor(mark: string) {
    this.#mark = mark;
  }

  seal(text: string): string {
    return this.#mark + Buffer.from(text).toString('base64');
  }

  /** The text of such content; null for that of another server, or of another kind. */
  open(content: string): string | null {
    if (!content.startsWith(this.#mark)) return null;
    return Buffer.from(content.slice(this.#mark.length), 'base64').toString();
  }
}

export const REASONING_SEAL = new Seal('skein1:');
export const COMPACTION_SEAL = new Seal('skein-compaction1:');
