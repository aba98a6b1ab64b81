import type { ErrorRecord } from '../../base/error-record.js';

/** Messages from the host's process to the worker's. */
export type Downward<Command> =
  /** The first message, sent once. */
  | {
      kind: 'setup';
      /** URL of the module that the worker's thread runs. */
      script: string;
      /** Data for the script, besides its wires. */
      data: object;
      /** Whose worker it is, as a sentence says it. */
      owner: string;
      /** How often the heartbeat is looked at, in milliseconds; 0: the heartbeat is not watched. */
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
