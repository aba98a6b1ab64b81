import { MarkerFinder } from '../tools/marker-finder.js';
import { PartList } from '../tools/part-list.js';
import type { AnswerParser, AnswerPart } from '../tools/types.js';
import type { AnswerReasoning, ReasoningStart } from './reasoning-marks.js';

/**
 * Parts reasoning from the answer that follows it, which another parser takes:
 *
 *   <think>\nHm.\n</think>\n\nYes.    ->    reasoning "Hm.", content "Yes."
 *
 * White space at the borders of both is the format's.
 */
export class ReasoningParser implements AnswerParser {
  readonly #inner: AnswerParser;
  readonly #start: ReasoningStart;
  readonly #opening: string;
  readonly #endFinder: MarkerFinder;
  readonly #parts = new PartList();
  #state: 'start' | 'reasoning' | 'gap' | 'answer' = 'start';
  /** Beginning of the answer, as long as it may be the marker. */
  #begun = '';
  #space = '';
  #hasReasoning = false;

  constructor({ start, marks }: AnswerReasoning, inner: AnswerParser) {
    this.#start = start;
    this.#opening = marks.begin + marks.label;
    this.#endFinder = new MarkerFinder([marks.end]);
    this.#inner = inner;
    if (start !== 'inside') return;
    this.#state = 'reasoning';
    // Space at its beginning belongs to it.
    this.#hasReasoning = true;
  }

  /** True where the next text is reasoning, false where it is not; null: not known yet. */
  get isReasoning(): boolean | null {
    if (this.#state === 'start') return this.#start === 'open' ? true : null;
    return this.#state === 'reasoning';
  }

  get held(): number {
    if (this.#state === 'answer') return this.#inner.held;
    return this.#state === 'start' && this.#start === 'maybe' ? this.#begun.length : 0;
  }

  get breaks(): number {
    return this.#inner.breaks ?? 0;
  }

  push(text: string): AnswerPart[] {
    let i = 0;
    while (i < text.length && this.#state !== 'answer') this.#step(text.charAt(i++));
    if (i < text.length) this.#parts.append(this.#inner.push(text.slice(i)));
    return this.#parts.take();
  }

  end(): AnswerPart[] {
    if (this.#state === 'start') this.#begin(this.#start === 'open');
    if (this.#state === 'reasoning') this.#think(this.#endFinder.flush());
    this.#parts.append(this.#inner.end());
    return this.#parts.take();
  }

  #step(character: string): void {
    if (this.#state === 'start') this.#atStart(character);
    else if (this.#state === 'reasoning') {
      const { text, marker } = this.#endFinder.step(character);
      this.#think(text);
      if (marker !== null) this.#state = 'gap';
    } else if (!/\s/.test(character)) {
      this.#state = 'answer';
      this.#parts.append(this.#inner.push(character));
    }
  }

  #atStart(character: string): void {
    this.#begun += character;
    const begun = this.#begun.trimStart();
    if (begun === this.#opening) {
      this.#begun = '';
      this.#begin(true);
    } else if (!this.#opening.startsWith(begun)) this.#begin(this.#start === 'open');
  }

  /** Ends the beginning, which has proved to be a marker or not. */
  #begin(isReasoning: boolean): void {
    const begun = this.#begun;
    this.#begun = '';
    this.#state = isReasoning ? 'reasoning' : 'answer';
    if (!isReasoning) this.#parts.append(this.#inner.push(begun));
    else for (const unit of begun.split('')) this.#step(unit);
  }

  #think(text: string): void {
    const end = text.trimEnd().length;
    if (end > 0) {
      const first = this.#hasReasoning ? this.#space + text.slice(0, end) : text.slice(0, end).trimStart();
      this.#parts.add('reasoning', first);
      this.#hasReasoning = true;
      this.#space = '';
    }
    if (this.#hasReasoning) this.#space += text.slice(end);
  }
}

/** Parser of an answer that is only text. */
export class PlainParser implements AnswerParser {
  readonly held = 0;

  push(text: string): AnswerPart[] {
    return text === '' ? [] : [{ type: 'content', text }];
  }

  end(): AnswerPart[] {
    return [];
  }
}
