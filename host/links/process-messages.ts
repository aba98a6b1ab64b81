import type { NamedText } from '../../base/named-text.js';
import { retell, textOf } from '../../base/skein-error.js';

/** The parts of an error that cross from one process to the other. */
export interface ErrorRecord {
  name: string;
  text: NamedText;
  stack?: string | undefined;
  /** Fields of the error's class, its code among them. */
  held: Readonly<Record<string, unknown>>;
}

/** Messages from the host's process to the worker's. */
export type Downward<Command> =
  /** The first message, sent once. */
  | {
      kind: 'setup';
      /** URL of the module that the worker's thread runs. */
      script: string;
      /** Data for the script, beside its wires. */
      data: object;
      /** Whose worker it is, as a sentence says it. */
      owner: string;
      /** How often the heartbeat is looked at, in milliseconds; 0: nobody wants to know of it. */
      beatMs: number;
    }
  | { kind: 'message'; message: Command | { type: 'shutdown' } };

/** Messages from the worker's process to the host's. */
export type Upward<Message> =
  | { kind: 'message'; message: Message }
  /** The heartbeat, where it has changed. */
  | { kind: 'beat'; beats: number; isAsleep: boolean }
  /** The worker's thread has ended, and the process ends now; `error` is null where it was asked to end. */
  | { kind: 'ended'; error: ErrorRecord | null };

export function recordOf(error: Error): ErrorRecord {
  const { name, stack } = error;
  return { name, text: textOf(error), stack, held: { ...error } };
}

export function errorOf({ name, text, stack, held }: ErrorRecord): Error {
  return Object.assign(retell(new Error(), text), { ...held, name, stack });
}
