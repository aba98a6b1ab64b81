import { messageOf } from './error-text.js';
import { type NamedText, worded } from './named-text.js';

/**
 * What every error of this package is: `code` says which one, and stays what it is while sentences change. All codes are
 * listed in docs/errors.md.
 */
export abstract class SkeinError extends Error {
  abstract readonly code: `SKEIN_${string}`;
  /** The message with its names as data, for whoever words it anew; `message` has the names of the engine. */
  declare readonly text: NamedText;

  constructor(text: NamedText = '', options?: ErrorOptions) {
    super(worded(text), options);
    hold(this, 'text', text);
  }
}

/** The text of anything thrown, of an error that came from another thread too: classes do not cross, what they hold does. */
export function textOf(thrown: unknown): NamedText {
  const text = thrown instanceof Error ? (thrown as { text?: unknown }).text : undefined;
  return typeof text === 'string' || Array.isArray(text) ? (text as NamedText) : messageOf(thrown);
}

/** The code of an error of this package, whichever thread it came from; null for any other. */
export function codeOf(thrown: unknown): string | null {
  const code = thrown instanceof Error ? (thrown as { code?: unknown }).code : undefined;
  return typeof code === 'string' && code.startsWith('SKEIN_') ? code : null;
}

/** Gives an error, which keeps its class and its stack, another sentence. */
export function retell<E extends Error>(error: E, text: NamedText): E {
  hold(error, 'message', worded(text));
  hold(error, 'text', text);
  return error;
}

/** As errors hold their message: not listed where one is printed. */
function hold(error: Error, name: 'message' | 'text', value: NamedText): void {
  Object.defineProperty(error, name, { value, configurable: true, writable: true, enumerable: false });
}
