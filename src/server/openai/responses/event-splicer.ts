/** An event of a response, as it was stored. */
export interface StoredEvent {
  type: string;
  fields: Record<string, unknown>;
}

const FRAME = /^event: ([\w.]+)\ndata: (.*)$/;

/** The events of a text of whole frames. @throws Error where it has anything else */
export function eventsIn(text: string): StoredEvent[] {
  return framesIn(text).map((frame) => {
    const [, type, data] = FRAME.exec(frame.trimEnd()) ?? [];
    if (type === undefined) throw new Error('The events of a response that was begun cannot be read.');
    return { type, fields: JSON.parse(data!) as Record<string, unknown> };
  });
}

/** The frames of a text. JSON has no line breaks of its own, so that an empty line ends an event. */
export function framesIn(text: string): string[] {
  return text.split(/(?<=\n\n)/).filter((frame) => frame !== '');
}

/**
 * Continues the events of a response that another server began. The answer is generated again, which gives
 * the same text; what was already sent is removed, however it was cut into events:
 *
 *   stored     [Hello,] [ wor]
 *   made again [Hell] [o, world] [!]   ->   [ld] [!]
 */
export class EventSplicer {
  /** Events that were stored: the number of the next one. */
  readonly count: number;
  readonly #stored: readonly StoredEvent[];
  #next = 0;
  /** Characters and log-probs of the next stored event that were made again. */
  #met = { characters: 0, logProbs: 0 };

  constructor(stored: readonly StoredEvent[]) {
    this.#stored = stored;
    this.count = stored.length;
  }

  /**
   * Takes a new event.
   * @returns those of its fields that were not sent before; null: all were.
   * @throws Error for another answer
   */
  rest<Fields extends object>(type: string, fields: Fields): Fields | null {
    if (this.#next === this.#stored.length) return fields;
    if (!('delta' in fields)) {
      if (this.#stored[this.#next]!.type !== type || this.#met.characters > 0) throw otherAnswer(type);
      this.#next++;
      return null;
    }
    return this.#restOfDelta(type, fields as Fields & Delta);
  }

  #restOfDelta<Fields extends object>(type: string, fields: Fields & Delta): Fields | null {
    let { delta } = fields;
    let logProbs = [...(fields.logprobs ?? [])];
    while (delta !== '' && this.#next < this.#stored.length) {
      const stored = this.#stored[this.#next]!;
      const told = stored.fields as Partial<Delta>;
      if (stored.type !== type || typeof told.delta !== 'string') throw otherAnswer(type);
      const rest = told.delta.slice(this.#met.characters);
      const length = Math.min(rest.length, delta.length);
      if (rest.slice(0, length) !== delta.slice(0, length)) throw otherAnswer(type);
      delta = delta.slice(length);
      const untold = (told.logprobs?.length ?? 0) - this.#met.logProbs;
      const isWhole = length === rest.length;
      const met = isWhole ? untold : Math.min(untold, logProbs.length);
      logProbs = logProbs.slice(met);
      if (isWhole) {
        this.#next++;
        this.#met = { characters: 0, logProbs: 0 };
      } else {
        this.#met = {
          characters: this.#met.characters + length,
          logProbs: this.#met.logProbs + met,
        };
      }
    }
    if (delta === '' && fields.delta !== '') return null;
    return { ...fields, delta, ...(fields.logprobs && { logprobs: logProbs }) };
  }
}

/** Fields of an event that carries more of a text. */
interface Delta {
  delta: string;
  logprobs?: readonly unknown[];
}

function otherAnswer(type: string): Error {
  return new Error(
    `The answer that was begun does not go on as it was: ${type} is not what was told before.`,
  );
}
