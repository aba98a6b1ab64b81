import { messageOf } from '../../base/error-text.js';
import { failure, type RequestFailure } from '../request-failure.js';
import type { FailureFrame, PieceFrame, PrefilledFrame } from './messages.js';
import type { WorkerPort } from './worker-port.js';

interface Frames {
  frames: PieceFrame[];
  failures: FailureFrame[];
  prefilled: PrefilledFrame[];
  /** Estimated bytes. */
  bytes: number;
}

/** Bytes of a frame beside its arrays, estimated. */
const FRAME_BYTES = 256;

/**
 * Gathers what one turn of the event loop brings, which is mostly one iteration of the engine, into one message for
 * each gateway.
 */
export class FrameSender {
  readonly #worker: string;
  readonly #port: Pick<WorkerPort, 'send' | 'maxBytes'>;
  readonly #onUnsent: (id: string, attempt: number, why: RequestFailure) => void;
  readonly #gathered = new Map<string, Frames>();
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

  send(gateway: string, frame: PieceFrame): void {
    const bytes = bytesOf(frame);
    const limit = this.#port.maxBytes;
    if (bytes > limit) {
      const why = `A piece of the answer takes ${bytes} bytes, and the NATS server lets a message have ${limit} (max_payload); ask for fewer values beside the tokens, or raise its limit.`;
      this.#onUnsent(frame.id, frame.attempt, failure('unsupported', why));
      return;
    }
    if ((this.#gathered.get(gateway)?.bytes ?? 0) + bytes > limit) this.flush();
    const frames = this.#framesFor(gateway);
    frames.frames.push(frame);
    frames.bytes += bytes;
  }

  fail(gateway: string, frame: FailureFrame): void {
    const frames = this.#framesFor(gateway);
    frames.failures.push(frame);
    frames.bytes += FRAME_BYTES;
  }

  prefilled(gateway: string, frame: PrefilledFrame): void {
    const frames = this.#framesFor(gateway);
    frames.prefilled.push(frame);
    frames.bytes += FRAME_BYTES;
  }

  #framesFor(gateway: string): Frames {
    let frames = this.#gathered.get(gateway);
    if (frames === undefined) {
      frames = { frames: [], failures: [], prefilled: [], bytes: 0 };
      this.#gathered.set(gateway, frames);
    }
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      queueMicrotask(() => this.flush());
    }
    return frames;
  }

  flush(): void {
    this.#isScheduled = false;
    const gathered = [...this.#gathered];
    this.#gathered.clear();
    for (const [gateway, { frames, failures, prefilled }] of gathered) {
      const more = prefilled.length === 0 ? {} : { prefilled };
      try {
        this.#port.send(gateway, { kind: 'frames', worker: this.#worker, frames, failures, ...more });
      } catch (error) {
        const why = failure('internal', `The answer could not be sent: ${messageOf(error)}`);
        for (const { id, attempt } of frames) this.#onUnsent(id, attempt, why);
      }
    }
  }
}

function bytesOf({ piece }: PieceFrame): number {
  let bytes = FRAME_BYTES;
  for (const value of Object.values(piece)) if (ArrayBuffer.isView(value)) bytes += value.byteLength;
  return bytes;
}
