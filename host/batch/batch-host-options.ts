import type { WorkerRestartOptions } from '../../callbacks/restart-policy.js';
import type { LinkEvents, WorkerLink } from '../links/worker-link.js';
import type { LifeOptions } from '../manager-life.js';

/** Opens a worker. @param more fields of its data */
export type OpenOne = <Message extends { type: string }, Command>(
  more: object,
  events: LinkEvents<Message>,
) => WorkerLink<Command>;
export type OpenGroup = <Message extends { type: string }, Command>(
  events: LinkEvents<Message>,
  open: OpenOne,
) => WorkerLink<Command>;

export interface BatchHostOptions extends LifeOptions {
  /** What a sentence calls what runs here, at its beginning: 'The encoder'. */
  subject: string;
  /** The module that each worker runs. */
  script: URL;
  /** What the worker of an instance is given. @param claims memory of BatchClaims, where batches are taken back */
  data: (instance: number, claims: SharedArrayBuffer | null) => object;
  /** Whose worker it is, as a sentence says it; default 'The engine'. */
  ownerName?: (instance: number) => string;
  /** Opens an instance's worker where that is more than one thread or process, with the function that opens one. */
  openGroup?: OpenGroup | undefined;
  /** How many of them; default 1. */
  instances?: number | undefined;
  /** Batches that an instance may have: those beyond the first wait in its port, so that it never waits for this thread. Default 1. */
  batchesAhead?: number | undefined;
  /**
   * Milliseconds after which a running batch has the batch sent ahead of it taken back: that one can then grow, expire, be
   * overtaken or go to another instance. While batches take longer, none is sent ahead. The worker has to claim its batches.
   * Processes get no batch ahead where this is set. Default: batches sent ahead stay where they are.
   */
  recallAfterMs?: number | undefined;
  /** Entries that wait or run before `submit` throws QueueFullError. */
  maxEntries: number;
  /** Milliseconds that an instance may take over a batch; 0, the default: any time. */
  timeLimitMs?: number | undefined;
  /** Longest restart of an instance in milliseconds; 0, the default: no limit. */
  startLimitMs?: number | undefined;
  /** See OptionalParams of the GptManager: they mean the same. */
  isolate?: boolean | undefined;
  workerRestart?: WorkerRestartOptions | false | undefined;
  watchdogTimeoutMs?: number | undefined;
  terminateTimeoutMs?: number | undefined;
}
