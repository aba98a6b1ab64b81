import type { AnswerPart } from './types.js';

/** Parts in order of arrival, with neighbours of one kind joined. */
export class PartList {
  #parts: AnswerPart[] = [];

  add(type: 'content' | 'reasoning' | 'arguments', text: string): void {
    if (text === '') return;
    const last = this.#parts.at(-1);
    const goesOn = last !== undefined && last.type === type && !('isMade' in last);
    if (goesOn) last.text += text;
    else this.#parts.push({ type, text });
  }

  /** Adds content that is made, which stays a part of its own. */
  addMade(text: string): void {
    if (text !== '') this.#parts.push({ type: 'content', text, isMade: true });
  }

  addCall(name: string): void {
    this.#parts.push({ type: 'call', name });
  }

  append(parts: readonly AnswerPart[]): void {
    for (const part of parts) {
      if (part.type === 'call') this.addCall(part.name);
      else this.add(part.type, part.text);
    }
  }

  /** Returns the parts so far and empties the list. */
  take(): AnswerPart[] {
    const parts = this.#parts;
    this.#parts = [];
    return parts;
  }
}
