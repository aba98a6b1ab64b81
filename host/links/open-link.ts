import type { MessagePort } from 'node:worker_threads';
import type { WorkerLife } from '../../callbacks/worker-messages.js';
import { ProcessLink } from './process-link.js';
import { ThreadLink } from './thread-link.js';
import type { LinkEvents, WorkerLink } from './worker-link.js';

/**
 * Looks at a heartbeat in another process per time-out of the watchdog: what the watchdog reads is never much older.
 */
const LOOKS_PER_TIMEOUT = 16;
const MAX_BEAT_MS = 1000;

export interface LinkOptions {
  /** True for a process of its own instead of a thread of this one. */
  isolate: boolean;
  /** Time-out of the watchdog that reads the heartbeat, in milliseconds; 0: no watchdog. */
  watchdogTimeoutMs: number;
  /** Whose worker it is, as a sentence says it; default 'The engine'. */
  owner?: string;
  /** Ports in the data that become the worker's; only for a thread. */
  ports?: readonly MessagePort[];
}

/** Starts a worker that runs `script` with `data`. @throws the system's error where there is no room for a worker. */
export function openLink<Info, Message extends { type: string }, Command>(
  script: URL,
  data: object,
  events: LinkEvents<Message | WorkerLife<Info>>,
  { isolate, watchdogTimeoutMs, owner = 'The engine', ports = [] }: LinkOptions,
): WorkerLink<Command> {
  if (!isolate)
    return new ThreadLink<Info, Message, Command>(script, data, events, `${owner}'s worker thread`, ports);
  const beatMs = Math.ceil(Math.min(watchdogTimeoutMs / LOOKS_PER_TIMEOUT, MAX_BEAT_MS));
  return new ProcessLink<Info, Message, Command>(script, data, events, { owner, beatMs });
}
