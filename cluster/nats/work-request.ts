import { messageOf } from '../../base/error-text.js';
import { counted } from '../../base/sentences.js';
import { textOf } from '../../base/skein-error.js';
import { failure, type RequestFailure } from '../../callbacks/request-failure.js';
import { HostClosedError, RequestError, type TokenRequest } from '../../callbacks/token-request.js';
import type { Lane } from './frame-sender.js';
import type { WorkItem } from './messages.js';
import { PacketError } from './packet.js';
import { prefillRequest } from './prefill-request.js';
import { numSequencesOf, unpackedRequest } from './request-wire.js';

/** A worker's own fields of a request with an adapter. */
export type OwnAdapter = Pick<TokenRequest, 'loraTaskId' | 'adapter'>;

/** Adapters of a worker. */
export interface WorkAdapters {
  /** The adapter of a name; null: the worker has none of this name. */
  adapterOf: (name: string) => OwnAdapter | null;
}

/** The engine's request of an item. @throws PacketError; RequestError for an adapter that the worker does not have */
export function requestOf(
  { request, known, ended, isPrefill = false }: WorkItem,
  worker: WorkAdapters,
): TokenRequest {
  const whole = unpackedRequest(request);
  const count = numSequencesOf(whole);
  if (known.length > count || ended.some((sequence) => sequence >= count)) {
    throw new PacketError(`A request of ${counted(count, 'sequence')} names more that were begun or ended.`);
  }
  const read = isPrefill ? prefillRequest(whole) : whole;
  const { adapterName } = read;
  if (adapterName === undefined) return read;
  const own = worker.adapterOf(adapterName);
  if (own !== null) return { ...read, ...own };
  throw RequestError.of(failure('adapter', `The worker has no LoRA adapter '${adapterName}'.`, 'loraTaskId'));
}

export function lanesOf(item: WorkItem, numSequences: number): Lane[] {
  const ended = new Set(item.isPrefill ? [] : item.ended);
  return Array.from({ length: numSequences }, (_, sequence) => {
    const next = item.known[sequence] ?? 0;
    return { item, sequence, next, isEnded: ended.has(sequence), framedIn: 0 };
  });
}

/** What a gateway receives about an error that a request ran into at a worker. */
export function failureFor(error: unknown): RequestFailure {
  if (error instanceof RequestError) return failure(error.kind, error.text, error.field);
  if (error instanceof HostClosedError) return failure('ended', textOf(error));
  // What cannot be read here, no equal worker reads.
  if (error instanceof PacketError) return failure('invalid', textOf(error));
  return failure('internal', messageOf(error));
}
