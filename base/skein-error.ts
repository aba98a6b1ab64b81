import { messageOf } from './error-text.js';
import { type NamedText, worded } from './named-text.js';

/**
 * Base class of all errors of this package: `code` names the kind of error, and stays when sentences change.
 * docs/errors.md lists all codes.
 */
export abstract class SkeinError extends Error {
  /** Name of the kind of error, such as SKEIN_PARAMETER: stays the same when the message changes. */
  abstract readonly code: `SKEIN_${string}`;
  /** The message with its names as data, to be worded again; `message` has the engine's names. */
  declare readonly text: NamedText;

  constructor(text: NamedText = '', options?: ErrorOptions) {
    super(worded(text), options);
    hold(this, 'text', text);
  }
}

/** Text of anything thrown, also in another thread: an error's class is lost on the way, its fields are not. */
export function textOf(thrown: unknown): NamedText {
  const text = thrown instanceof Error ? (thrown as { text?: unknown }).text : undefined;
  return typeof text === 'string' || Array.isArray(text) ? (text as NamedText) : messageOf(thrown);
}

/** Code of an error of this package, from whichever thread; null for any other. */
export function codeOf(thrown: unknown): string | null {
  const code = thrown instanceof Error ? (thrown as { code?: unknown }).code : undefined;
  return typeof code === 'string' && code.startsWith('SKEIN_') ? code : null;
}

/** Replaces the sentence of an error, which keeps its class and stack. */
export function retell<E extends Error>(error: E, text: NamedText): E {
  hold(error, 'message', worded(text));
  hold(error, 'text', text);
  return error;
}

/** Sets a property as errors hold their message: not listed where the error is printed. */
function hold(error: Error, name: 'message' | 'text', value: NamedText): void {
  Object.defineProperty(error, name, { value, configurable: true, writable: true, enumerable: false });
}
