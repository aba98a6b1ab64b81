import { isObject } from '../../base/option-values.js';
import { isFailureKind, type RequestFailure } from '../../callbacks/request-failure.js';
import { MAX_SEQUENCES, type RequestPicture, type TokenPiece } from '../../callbacks/token-request.js';
import { MAX_CONVERSATION_PICTURES } from '../../models/images/picture-limits.js';
import { type Beat, isBeat } from './beat.js';
import {
  CACHE_CHECKS,
  type CacheAsk,
  type CacheChange,
  type CachePart,
  type TakenAnswer,
} from './cache-messages.js';
import { isCount, isLease, isLength, isList, isSwitch, isText, isWord } from './field-checks.js';
import { jsonOf, type Packable, PacketError, pack, unpack } from './packet.js';
import { isPiece } from './piece-form.js';
import { readPlainFrames } from './plain-frames.js';
import type { PackedRequest } from './request-wire.js';
import { areRuns } from './token-runs.js';
import type { ItemTrace } from './trace-context.js';

/** A request as it lies in the stream. What of it is traced is read by readTrace, which bounds it. */
export interface WorkItem extends ItemTrace {
  kind: 'work';
  gateway: string;
  /** Of the request, among all of all gateways. */
  id: string;
  /** Of the request, among those of its gateway. Absent: the gateway reads no runs; see FramesMessage. */
  number?: number;
  attempt: number;
  request: PackedRequest;
  /** Number of tokens of each sequence that the gateway has; the worker's tokens count on from there. */
  known: number[];
  /** Sequences of which the client wants no more. */
  ended: number[];
  /** Only the blocks of its prompt are wanted, for another worker. Absent: an answer is. */
  isPrefill?: boolean;
  /** Where blocks of its prompt can be fetched. */
  handOver?: HandOver;
  /** Its pictures, which its gateway has. Absent: it has none. */
  pictures?: ItemPicture[];
}

/**
 * What a worker receives of a picture: it asks for the bytes if it does not have the rows. See
 * RequestPicture.
 */
export type ItemPicture = Pick<RequestPicture, 'digest' | 'width' | 'height' | 'numBytes'>;

/** Id of a request. @param number see WorkItem */
export function requestId(gateway: string, number: number): string {
  return `${gateway}-${number}`;
}

/** Blocks of a prompt that a worker has computed and keeps for another one, for a while. */
export interface HandOver {
  /** Who has them. */
  worker: string;
  /** Attempt of the request in which they were computed. */
  attempt: number;
  /** See Beat.layout: only a worker of the same one can use them. */
  layout: string;
  bytes: number;
  numBlocks: number;
}

/** One piece of one sequence. `index`: see Frame. */
export interface PieceFrame {
  id: string;
  attempt: number;
  sequence: number;
  index: number;
  piece: TokenPiece;
}

/** The end of an attempt without an answer. */
export interface FailureFrame {
  id: string;
  attempt: number;
  failure: RequestFailure;
}

/** The end of an attempt of which only blocks were wanted. No bytes: there is nothing to fetch. */
export interface PrefilledFrame {
  id: string;
  attempt: number;
  /** Tokens of the prompt that were in the worker's cache before. */
  cachedTokens: number;
  bytes: number;
  numBlocks: number;
}

/** Pieces of one iteration or so. */
export interface FramesMessage {
  kind: 'frames';
  worker: string;
  /** Those that are nothing but tokens; see readRuns. They come before the `frames`. Absent: none. */
  runs?: Int32Array;
  frames: PieceFrame[];
  failures: FailureFrame[];
  /** Absent: none. */
  prefilled?: PrefilledFrame[];
}

/** What a worker has of a gateway: asked again and again, it is answered with what the gateway does not wait for. */
export interface HoldMessage {
  kind: 'hold';
  worker: string;
  /** Ids and attempts. */
  held: [id: string, attempt: number][];
}

export interface HoldAnswer {
  kind: 'held';
  /** Ids of `held` that no request waits for, with their attempts. */
  stale: [id: string, attempt: number][];
}

/** A part of a picture of a request that a worker has; answered with a BlocksAnswer. */
export interface PictureMessage {
  kind: 'picture';
  id: string;
  attempt: number;
  /** Which of its pictures. */
  index: number;
  offset: number;
  length: number;
}

export type ToGateway = FramesMessage | HoldMessage | PictureMessage;

/** A sequence is no longer wanted, or, without a number, none of the request in this attempt. */
export interface StopMessage {
  kind: 'stop';
  id: string;
  attempt: number;
  sequence: number | null;
}

/** Is the worker there? It answers with its own beat. */
export interface ProbeMessage {
  kind: 'probe';
}

/** A part of one of the worker's files. */
export interface FileMessage {
  kind: 'file';
  pool: string;
  name: string;
  offset: number;
}

/** A part of the blocks that a worker keeps for another one; answered with a BlocksAnswer. */
export interface BlocksMessage {
  kind: 'blocks';
  id: string;
  attempt: number;
  offset: number;
  length: number;
}

/** The bytes that were asked for; none where they are not there (any more). */
export interface BlocksAnswer {
  kind: 'blocksPart';
  bytes: Uint8Array;
  /** CRC-32 of the bytes. */
  sum: number;
}

/** A WorkItem comes here where its gateway has chosen this worker for it; it is answered with a TakenAnswer. */
export type ToWorker = WorkItem | StopMessage | ProbeMessage | FileMessage | BlocksMessage | CacheAsk;

export type QueueMessage =
  | ToGateway
  | HoldAnswer
  | ToWorker
  | BlocksAnswer
  | Beat
  | CacheChange
  | CachePart
  | TakenAnswer;

export function packMessage(message: QueueMessage): Uint8Array {
  return pack(message as unknown as Packable);
}

/**
 * Reads a message of one of these kinds. Who may send to these subjects is the NATS server's to decide: what is checked
 * here is that nothing breaks on the way, and which kind it is. @throws PacketError
 */
export function unpackMessage<Kind extends QueueMessage['kind']>(
  bytes: Uint8Array,
  ...kinds: Kind[]
): Extract<QueueMessage, { kind: Kind }> {
  const plain = kinds.some((one) => one === 'frames') ? readPlainFrames(bytes) : null;
  if (plain !== null) return plain as Extract<QueueMessage, { kind: Kind }>;
  const message = unpack(bytes) as { kind?: unknown } | null;
  const { kind } = message ?? {};
  if (!kinds.some((one) => one === kind)) {
    const found = typeof kind === 'string' ? JSON.stringify(kind.slice(0, 40)) : 'no text';
    throw new PacketError(`The kind of a message is ${found}; ${kinds.join(' or ')} is expected.`);
  }
  checkFields(message as unknown as QueueMessage);
  return message as Extract<QueueMessage, { kind: Kind }>;
}

/**
 * The sender of a work item that unpackMessage cannot read, as far as it can be determined; null: it cannot.
 * Its gateway learns by it that the request is of no use.
 */
export function senderOf(bytes: Uint8Array): Pick<WorkItem, 'gateway' | 'id' | 'attempt'> | null {
  try {
    const { gateway, id, attempt } = jsonOf(bytes) as WorkItem;
    return isWord(gateway) && isText(id) && isCount(attempt) ? { gateway, id, attempt } : null;
  } catch {
    return null;
  }
}

function isPieceFrame(frame: unknown): boolean {
  if (!isObject(frame)) return false;
  const { id, attempt, sequence, index, piece } = frame;
  return isText(id) && [attempt, sequence, index].every(isCount) && isPiece(piece);
}

function isFailureFrame(frame: unknown): boolean {
  if (!isObject(frame) || !isText(frame.id) || !isCount(frame.attempt) || !isObject(frame.failure))
    return false;
  const { kind, text, field } = frame.failure;
  return isFailureKind(kind) && isNamedText(text) && (field === null || isText(field));
}

function isNamedText(text: unknown): boolean {
  const isPart = (part: unknown) => isText(part) || (isObject(part) && isText(part.of) && isText(part.name));
  return isText(text) || isList(text, isPart);
}

function isHandOver(value: unknown): boolean {
  if (value === undefined) return true;
  if (!isObject(value)) return false;
  const { worker, attempt, layout, bytes, numBlocks } = value;
  return isWord(worker) && isText(layout) && [attempt, bytes, numBlocks].every(isCount);
}

function isItemPicture(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { digest, width, height, numBytes } = value;
  return digest instanceof Uint8Array && [width, height, numBytes].every(isCount);
}

function isPrefilledFrame(frame: unknown): boolean {
  if (!isObject(frame)) return false;
  const { id, attempt, cachedTokens, bytes, numBlocks } = frame;
  return isText(id) && [attempt, cachedTokens, bytes, numBlocks].every(isCount);
}

const CHECKS: { [Kind in QueueMessage['kind']]: (message: Record<string, unknown>) => boolean } = {
  work: ({ gateway, id, number = 0, attempt, known, ended, request, isPrefill, handOver, pictures = [] }) =>
    isSwitch(isPrefill) &&
    isList(pictures, isItemPicture, MAX_CONVERSATION_PICTURES) &&
    isHandOver(handOver) &&
    isWord(gateway) &&
    isText(id) &&
    isCount(number) &&
    isLength(attempt) &&
    isList(known, isLength, MAX_SEQUENCES) &&
    isList(ended, isCount, MAX_SEQUENCES) &&
    isObject(request),
  frames: ({ worker, runs, frames, failures, prefilled = [] }) =>
    isWord(worker) &&
    (runs === undefined || (runs instanceof Int32Array && areRuns(runs))) &&
    isList(frames, isPieceFrame) &&
    isList(failures, isFailureFrame) &&
    isList(prefilled, isPrefilledFrame),
  picture: ({ id, attempt, index, offset, length }) =>
    isText(id) && [attempt, index, offset, length].every(isCount),
  hold: ({ worker, held }) => isWord(worker) && isList(held, isLease),
  held: ({ stale }) => isList(stale, isLease),
  stop: ({ id, attempt, sequence }) =>
    isText(id) && isCount(attempt) && (sequence === null || isCount(sequence)),
  probe: () => true,
  file: ({ pool, name, offset }) => isText(pool) && isText(name) && isCount(offset),
  blocks: ({ id, attempt, offset, length }) => isText(id) && [attempt, offset, length].every(isCount),
  ...CACHE_CHECKS,
  blocksPart: ({ bytes, sum }) => bytes instanceof Uint8Array && isCount(sum),
  beat: isBeat,
};

function checkFields(message: QueueMessage): void {
  const isRight = CHECKS[message.kind](message as unknown as Record<string, unknown>);
  if (!isRight)
    throw new PacketError(
      `A message of the kind ${message.kind} has a field that is missing, or of another type.`,
    );
}
