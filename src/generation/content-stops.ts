import type { StopAutomaton } from '../../models/tokenizer/stop-automaton.js';
import type { StopFinder, StopPush, StopStrings } from '../../models/tokenizer/stop-strings.js';
import type { AnswerParser, AnswerPart } from './tools/types.js';

const START = 0;

/**
 * Ends an answer at the first stop string of its content: reasoning and calls of functions are no text that a client's stop strings are meant
 * for. Text comes in and leaves as the model wrote it; what may yet become a stop string of the content is held back.
 *
 *   stop "\n"     <think>\nHm.\n</think>\n\nYes.\nOr     ->     <think>\nHm.\n</think>\n\nYes.
 *                 reasoning          | gap | content
 *
 * A stop string does not reach across a call: the content around it is two texts.
 */
export class ContentStops implements StopFinder {
  readonly #automaton: StopAutomaton;
  readonly #parser: AnswerParser;
  readonly #includeStop: boolean;
  /** State of the stop strings' automaton after the content so far. */
  #state = START;
  #held = '';
  #matched: number | null = null;
  /** Units of content after the stop string, which the parser gave out with it. */
  #unitsBehind = 0;

  /** @throws RangeError for an empty stop string. */
  constructor(stops: StopStrings, parser: AnswerParser, { includeStop }: { includeStop: boolean }) {
    this.#automaton = stops.automaton;
    this.#parser = parser;
    this.#includeStop = includeStop;
  }

  push(text: string): StopPush {
    if (this.#matched !== null) return { emit: '', matched: this.#matched };
    const before = this.#held.length;
    this.#held += text;
    for (let i = 0; i < text.length; i++) {
      const { breaks } = this.#parser;
      this.#find(this.#parser.push(text.charAt(i)));
      if (this.#matched !== null) return this.#cutAt(before + i + 1 - this.#parser.held);
      if (this.#parser.breaks !== breaks) this.#state = START;
    }
    const ready = this.#held.length - this.#parser.held - this.#automaton.depthOf(this.#state);
    if (ready <= 0) return { emit: '', matched: null };
    const emit = this.#held.slice(0, ready);
    this.#held = this.#held.slice(ready);
    return { emit, matched: null };
  }

  end(): StopPush {
    if (this.#matched !== null) return { emit: '', matched: this.#matched };
    this.#find(this.#parser.end());
    if (this.#matched !== null) return this.#cutAt(this.#held.length);
    const emit = this.#held;
    this.#held = '';
    return { emit, matched: null };
  }

  #find(parts: readonly AnswerPart[]): void {
    const automaton = this.#automaton;
    for (const part of parts) {
      if (part.type !== 'content' || part.isMade) {
        this.#state = START;
        continue;
      }
      for (let i = 0; i < part.text.length; i++) {
        this.#state = automaton.step(this.#state, part.text.charCodeAt(i));
        const stop = automaton.stopOf(this.#state);
        if (stop < 0) continue;
        this.#matched = stop;
        this.#unitsBehind = part.text.length - i - 1;
        return;
      }
    }
  }

  /** Cuts the text where the stop string begins. @param end where the content ends that the parser has given out */
  #cutAt(end: number): StopPush {
    const stop = this.#matched!;
    const behind = end - this.#unitsBehind;
    const emit = this.#held.slice(0, this.#includeStop ? behind : behind - this.#automaton.lengthOf(stop));
    this.#held = '';
    return { emit, matched: stop };
  }
}
