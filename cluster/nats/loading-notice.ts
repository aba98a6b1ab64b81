import { isObject } from '../../base/option-values.js';
import { isCount, isName, isWord } from './field-checks.js';
import { PacketError } from './packet.js';

/**
 * The phases of a worker until it takes requests, in order; the last one is reported once. `able`: nothing,
 * and it would load the model if it were wanted.
 */
export const LOADING_PHASES = ['able', 'downloading', 'building', 'loading', 'ready'] as const;
export type LoadingPhase = (typeof LOADING_PHASES)[number];

/** What a worker reports to gateways about its load, once a second, as JSON. */
export interface LoadingNotice {
  worker: string;
  /** Name of its model. */
  model: string;
  phase: LoadingPhase;
  /** Share of the phase that is done; null: not known. */
  fraction: number | null;
  /** Milliseconds since it began to load. */
  elapsedMs: number;
}

/** Far more than any notice has. */
const MAX_BYTES = 8 * 1024;

export function packLoading(notice: LoadingNotice): Uint8Array {
  return Buffer.from(JSON.stringify(notice));
}

/** @throws PacketError for what is none */
export function readLoading(bytes: Uint8Array): LoadingNotice {
  const notice = bytes.byteLength > MAX_BYTES ? null : parsed(bytes);
  if (!isLoading(notice)) throw new PacketError('It is not the report of a worker on its load.');
  const { worker, model, phase, fraction, elapsedMs } = notice;
  return { worker, model, phase, fraction, elapsedMs };
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString());
  } catch {
    return null;
  }
}

function isLoading(notice: unknown): notice is LoadingNotice {
  if (!isObject(notice)) return false;
  const { worker, model, phase, fraction, elapsedMs } = notice;
  const isShare = typeof fraction === 'number' && fraction >= 0 && fraction <= 1;
  const isPhase = LOADING_PHASES.some((one) => one === phase);
  return isWord(worker) && isName(model) && isPhase && (fraction === null || isShare) && isCount(elapsedMs);
}
