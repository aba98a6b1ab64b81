import { objectOf } from '../../generation/tools/call-reader.js';
import type { AnswerPart } from '../../generation/tools/types.js';

/** A call as this API has it: whole, its arguments an object. */
export interface OllamaCall {
  id: string;
  function: { index: number; name: string; arguments: Record<string, unknown> };
}

/** Parts of an answer, as far as they are whole. */
export interface CollectedParts {
  content: string;
  thinking: string;
  calls: OllamaCall[];
}

/** Gathers the parts of an answer; a call comes once its arguments are there. */
export class CallCollector {
  readonly #newId: () => string;
  #open: { name: string; text: string } | null = null;
  #count = 0;

  constructor(newId: () => string) {
    this.#newId = newId;
  }

  /** True where a call has been given. */
  get hasCalls(): boolean {
    return this.#count > 0;
  }

  /** @param isEnd no more parts come */
  take(parts: readonly AnswerPart[], isEnd: boolean): CollectedParts {
    const taken: CollectedParts = { content: '', thinking: '', calls: [] };
    for (const part of parts) {
      if (part.type === 'arguments') {
        if (this.#open !== null) this.#open.text += part.text;
        continue;
      }
      this.#close(taken);
      if (part.type === 'call') this.#open = { name: part.name, text: '' };
      else if (part.type === 'reasoning') taken.thinking += part.text;
      else taken.content += part.text;
    }
    if (isEnd) this.#close(taken);
    return taken;
  }

  /** Ends the open call. A call that was cut off in its arguments is left out: it could not be run. */
  #close(taken: CollectedParts): void {
    const open = this.#open;
    this.#open = null;
    if (open === null) return;
    const args = open.text.trim() === '' ? {} : objectOf(open.text);
    if (args === null) return;
    taken.calls.push({
      id: this.#newId(),
      function: { index: this.#count++, name: open.name, arguments: args },
    });
  }
}
