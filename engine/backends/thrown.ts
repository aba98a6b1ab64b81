import { inspect, types } from 'node:util';
import { cutText, messageOf } from '../../base/error-text.js';
import { codeOf } from '../../base/skein-error.js';
import { LONGEST_MESSAGE } from '../../callbacks/infer/request-limits.js';
import type { BackendError } from './backend.js';

/** Characters of the frames of a stack that cross. */
const LONGEST_FRAMES = 8192;
/** Errors of a chain of causes that cross. */
const MAX_CAUSES = 4;
const LONGEST_NAME = 100;

/** The message of anything thrown, at most LONGEST_MESSAGE characters and the sign of a cut. Never throws. */
export function thrownText(thrown: unknown): string {
  return cutText(wholeText(thrown), LONGEST_MESSAGE);
}

/** Lines of the stack after the message; '' if there are none. Never throws. */
export function thrownFrames(thrown: unknown): string {
  const stack = propertyOf(thrown, 'stack');
  if (typeof stack !== 'string') return '';
  const message = wholeText(thrown);
  const at = message === '' ? -1 : stack.indexOf(message);
  const behind = at < 0 ? stack.indexOf('\n    at ') : at + message.length;
  return behind < 0 ? '' : stack.slice(behind);
}

/** What Node.js writes before the message of an error of reading code, the file and the line first; '' where there is nothing. */
export function thrownHead(thrown: unknown): string {
  const stack = propertyOf(thrown, 'stack');
  const name = propertyOf(thrown, 'name');
  if (typeof stack !== 'string' || typeof name !== 'string' || name === '') return '';
  const at = stack.startsWith(name) ? -1 : stack.indexOf(`\n${name}`);
  return at < 0 ? '' : stack.slice(0, at);
}

/**
 * A plain error with what a thrown value says, within bounds: message, `code`, and in its stack the frames
 * and causes. It may cross to another thread, whatever was thrown. Never throws.
 */
export function boundedError(thrown: unknown): Error {
  const error = new Error(thrownText(thrown));
  error.name = nameOf(thrown);
  keepFrames(error, thrown);
  const code = propertyOf(thrown, 'code');
  if (typeof code === 'string') Object.assign(error, { code: cutText(code, LONGEST_NAME) });
  return error;
}

/** Gives an error the frames and the causes of what was thrown, as its stack. */
export function keepFrames(error: Error, thrown: unknown): void {
  let stack = `${error.name}: ${error.message}${cutText(thrownFrames(thrown), LONGEST_FRAMES)}`;
  let cause = propertyOf(thrown, 'cause');
  for (let i = 0; i < MAX_CAUSES && cause !== undefined && cause !== null; i++) {
    stack += `\ncaused by ${nameOf(cause)}: ${thrownText(cause)}${cutText(thrownFrames(cause), LONGEST_FRAMES)}`;
    cause = propertyOf(cause, 'cause');
  }
  error.stack = stack;
}

/**
 * A BackendError: it says itself what happened, and was not thrown by the model's code, which may throw what
 * cannot be looked at. Recognized by its code: the command line's bundles of the worker and of a backend have
 * a class each.
 */
export function isOwn(thrown: unknown): thrown is BackendError {
  try {
    return codeOf(thrown) === 'SKEIN_BACKEND';
  } catch {
    return false;
  }
}

function nameOf(thrown: unknown): string {
  const name = isError(thrown) ? propertyOf(thrown, 'name') : undefined;
  return typeof name === 'string' ? cutText(name, LONGEST_NAME) : 'Error';
}

/** A property of whatever was thrown; undefined where it cannot be read. */
export function propertyOf(thrown: unknown, name: string): unknown {
  try {
    return (thrown as Record<string, unknown> | null | undefined)?.[name];
  } catch {
    return undefined;
  }
}

function wholeText(thrown: unknown): string {
  if (isError(thrown)) {
    const message = messageOf(thrown);
    if (message !== '') return message;
  }
  if (typeof thrown !== 'object' && typeof thrown !== 'function') return messageOf(thrown);
  try {
    const shown = inspect(thrown, {
      depth: 1,
      customInspect: false,
      maxArrayLength: 10,
      maxStringLength: 200,
    });
    return shown.split('\n', 4).join('\n');
  } catch {
    return messageOf(undefined);
  }
}

/** Also of another realm. */
function isError(thrown: unknown): thrown is Error {
  try {
    return types.isNativeError(thrown) || thrown instanceof Error;
  } catch {
    return false;
  }
}
