import type { Random } from '../../support/random.js';
import type { Call } from '../client/call.js';
import type { Ask } from '../client/client.js';
import type { Json } from '../client/fold.js';

export type Body = Record<string, unknown>;

/** What a client does for one answer: one call, or several of which each needs what the one before has said. */
export interface Script {
  /** Says all that it asks for, so that two of one key get one answer. */
  key: string;
  /** It is one call whose answer is streamed, so that a part of it can be compared. */
  isStreamed: boolean;
  /** A call needs what one before it has left in the store. */
  keepsThings: boolean;
  /** @returns what is compared */
  run: (ask: Ask) => Promise<Json>;
}

/** One call. */
export const single = (path: string, body: Body): Script => {
  const asked: Call = { method: 'POST', path, body };
  return {
    key: JSON.stringify(asked),
    isStreamed: body.stream === true,
    keepsThings: false,
    run: (ask) => ask(asked),
  };
};

/** Several calls. @param drawn all that they depend on */
export const dialogue = (drawn: Body, run: Script['run']): Script => ({
  key: JSON.stringify(drawn),
  isStreamed: false,
  keepsThings: true,
  run,
});

/** Fields of every request: without a seed its answer could not be compared. */
export const common = (random: Random): Body => ({
  model: 'gosling',
  temperature: 1,
  seed: random.below(1_000_000),
});
