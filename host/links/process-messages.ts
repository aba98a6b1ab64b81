import type { NamedText } from '../../base/named-text.js';
import { retell, textOf } from '../../base/skein-error.js';

/** What an error keeps on its way from one process to the other. */
export interface ErrorRecord {
  name: string;
  text: NamedText;
  stack?: string | undefined;
  /** The fields of its class, its code among them. */
  held: Readonly<Record<string, unknown>>;
}

/** What the host's process sends to the worker's. */
export type Downward<Command> =
  /** First, once. */
  | {
      kind: 'setup';
      /** URL of the module that the worker's thread runs. */
      script: string;
      /** What the script gets beside its wires. */
      data: object;
      /** Whose worker it is, as a sentence says it. */
      owner: string;
      /** How often the heartbeat is looked at, in milliseconds; 0: nobody wants to know of it. */
      beatMs: number;
    }
  | { kind: 'message'; message: Command | { type: 'shutdown' } };

/** What the worker's process sends to the host's. */
export type Upward<Message> =
  | { kind: 'message'; message: Message }
  /** Where the heartbeat has changed. */
  | { kind: 'beat'; beats: number; isAsleep: boolean }
  /** The worker's thread has ended, and the process does so now; null: as it was asked to. */
  | { kind: 'ended'; error: ErrorRecord | null };

export function recordOf(error: Error): ErrorRecord {
  const { name, stack } = error;
  return { name, text: textOf(error), stack, held: { ...error } };
}

export function errorOf({ name, text, stack, held }: ErrorRecord): Error {
  return Object.assign(retell(new Error(), text), { ...held, name, stack });
}
