import { messageOf } from '../../base/error-text.js';
import { failure, type RequestFailure } from '../../callbacks/request-failure.js';
import type { TokenPiece } from '../../callbacks/token-request.js';
import type { FailureFrame, PieceFrame, PrefilledFrame } from './messages.js';
import { RunWriter, runBytes } from './token-runs.js';
import type { WorkerPort } from './worker-port.js';

/** What is gathered for one gateway. */
interface Frames {
  runs: RunWriter;
  /** Attempts with runs, which fail where the message cannot be sent. */
  inRuns: Set<Lane['item']>;
  frames: PieceFrame[];
  failures: FailureFrame[];
  prefilled: PrefilledFrame[];
  /** Estimated bytes. */
  bytes: number;
}

/** One sequence of an attempt, as its pieces are sent. */
export interface Lane {
  item: { gateway: string; id: string; number?: number; attempt: number };
  sequence: number;
  /** Number of its tokens so far, those among them that the gateway knew. */
  next: number;
  isEnded: boolean;
  /** Message with its last frame, among those of the sender. */
  framedIn: number;
}

/** Bytes of a frame besides its arrays, estimated. */
const FRAME_BYTES = 256;

/**
 * Gathers what one turn of the event loop brings, which is mostly one iteration of the engine, into one message for
 * each gateway:
 *
 *   | runs: tokens alone, as numbers | frames: pieces with more than tokens | failures | prefilled |
 *
 * A gateway reads it in this order. So what follows a frame of its sequence as a run begins a new message.
 */
export class FrameSender {
  readonly #worker: string;
  readonly #port: Pick<WorkerPort, 'send' | 'maxBytes'>;
  readonly #onUnsent: (id: string, attempt: number, why: RequestFailure) => void;
  readonly #gathered = new Map<string, Frames>();
  /** Number of the messages that are being gathered: they are sent together. */
  #message = 1;
  #isScheduled = false;

  /** @param onUnsent called with the request of a frame that could not be sent, within `send` where it is too long */
  constructor(
    worker: string,
    port: Pick<WorkerPort, 'send' | 'maxBytes'>,
    onUnsent: (id: string, attempt: number, why: RequestFailure) => void,
  ) {
    this.#worker = worker;
    this.#port = port;
    this.#onUnsent = onUnsent;
  }

  /** Sends a piece of a sequence, whose tokens count on. */
  send(lane: Lane, piece: TokenPiece): void {
    const { item, sequence, next: index } = lane;
    lane.next = index + piece.tokens.length;
    if (item.number !== undefined && isOnlyTokens(piece))
      this.#sendRun(lane, item.number, index, piece.tokens);
    else {
      const { gateway, id, attempt } = item;
      this.#sendFrame(gateway, { id, attempt, sequence, index, piece });
      lane.framedIn = this.#message;
    }
  }

  #sendRun({ item, sequence, framedIn }: Lane, number: number, index: number, tokens: Int32Array): void {
    if (framedIn === this.#message) this.flush();
    const frames = this.#roomFor(item.gateway, runBytes(tokens));
    frames.runs.add(number, item.attempt, sequence, index, tokens);
    frames.inRuns.add(item);
  }

  #sendFrame(gateway: string, frame: PieceFrame): void {
    const bytes = bytesOf(frame);
    const limit = this.#port.maxBytes;
    if (bytes > limit) {
      const why = `A piece of the answer takes ${bytes} bytes, and the NATS server lets a message have ${limit} (max_payload); ask for fewer values besides the tokens, or raise its limit.`;
      this.#onUnsent(frame.id, frame.attempt, failure('unsupported', why));
      return;
    }
    this.#roomFor(gateway, bytes).frames.push(frame);
  }

  fail(gateway: string, frame: FailureFrame): void {
    this.#framesFor(gateway, FRAME_BYTES).failures.push(frame);
  }

  prefilled(gateway: string, frame: PrefilledFrame): void {
    this.#framesFor(gateway, FRAME_BYTES).prefilled.push(frame);
  }

  /** The message for a gateway to which `bytes` more are added; what does not fit goes into the next one. */
  #roomFor(gateway: string, bytes: number): Frames {
    const gathered = this.#gathered.get(gateway)?.bytes ?? 0;
    if (gathered + bytes > this.#port.maxBytes) this.flush();
    return this.#framesFor(gateway, bytes);
  }

  #framesFor(gateway: string, bytes: number): Frames {
    let frames = this.#gathered.get(gateway);
    if (frames === undefined) {
      frames = {
        runs: new RunWriter(),
        inRuns: new Set(),
        frames: [],
        failures: [],
        prefilled: [],
        bytes: 0,
      };
      this.#gathered.set(gateway, frames);
    }
    frames.bytes += bytes;
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      queueMicrotask(() => this.flush());
    }
    return frames;
  }

  flush(): void {
    this.#isScheduled = false;
    if (this.#gathered.size === 0) return;
    const gathered = [...this.#gathered];
    this.#gathered.clear();
    this.#message++;
    for (const [gateway, { runs, inRuns, frames, failures, prefilled }] of gathered) {
      const more = {
        ...(runs.isEmpty ? {} : { runs: runs.words }),
        ...(prefilled.length === 0 ? {} : { prefilled }),
      };
      try {
        this.#port.send(gateway, { kind: 'frames', worker: this.#worker, frames, failures, ...more });
      } catch (error) {
        const why = failure('internal', `The answer could not be sent: ${messageOf(error)}`);
        for (const { id, attempt } of [...inRuns, ...frames]) this.#onUnsent(id, attempt, why);
      }
    }
  }
}

function isOnlyTokens(piece: TokenPiece): boolean {
  if (piece.finishReason !== null) return false;
  for (const name in piece) if (name !== 'tokens' && name !== 'finishReason') return false;
  return true;
}

function bytesOf({ piece }: PieceFrame): number {
  let bytes = FRAME_BYTES;
  for (const value of Object.values(piece)) if (ArrayBuffer.isView(value)) bytes += value.byteLength;
  return bytes;
}
