import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import {
  type AskedCall,
  CELL_BYTES,
  DONE,
  type HostPostProcessors,
  LEFT,
  type PostProcessorAsk,
  type PostProcessorReply,
} from '../../callbacks/host-post-processors.js';
import type { PostProcessorCall } from '../../callbacks/post-processor-call.js';

/** The worker's end of post-processors that are functions of the host's thread. */
export class HostCalls {
  readonly names: readonly string[];
  readonly #port: MessagePort;
  #ask = 0;
  /** Memory of the last iteration, to be used again; null: there is none, or the host may still write to it. */
  #memory: SharedArrayBuffer | null = null;

  constructor({ names, port }: HostPostProcessors) {
    this.names = names;
    this.#port = port;
  }

  /**
   * Lets the host make the calls and waits for them, for each call at most `timeLimitMs`; then this call and those
   * after it have failed. Returns for each call why it failed, or null.
   */
  run(calls: readonly PostProcessorCall[], timeLimitMs: number): (string | null)[] {
    const asked = placesOf(calls);
    const memory = this.#memoryFor(asked);
    const cells = new Int32Array(memory, 0, CELL_BYTES / Int32Array.BYTES_PER_ELEMENT);
    const logits = new Float32Array(memory, CELL_BYTES);
    eachRow(calls, asked, (view, { first }) => logits.set(view, first));
    cells.fill(0);
    const ask = this.#ask++;
    this.#port.postMessage({ ask, calls: asked, memory } satisfies PostProcessorAsk);
    const done = wait(cells, calls.length, timeLimitMs);
    if (done < calls.length) {
      Atomics.store(cells, LEFT, 1);
      this.#memory = null;
    }
    eachRow(calls, asked.slice(0, done), (view, { first, length }) =>
      view.set(logits.subarray(first, first + length)),
    );
    const whys = this.#failures(ask, calls.length);
    return whys.map((why, i) => (i < done ? why : whyLate(calls[done]!.name, i === done, timeLimitMs)));
  }

  #memoryFor(asked: readonly AskedCall[]): SharedArrayBuffer {
    const last = asked.at(-1)!.rows.at(-1)!;
    const bytes = CELL_BYTES + (last.first + last.length) * Float32Array.BYTES_PER_ELEMENT;
    if (this.#memory === null || this.#memory.byteLength < bytes) {
      this.#memory = new SharedArrayBuffer(bytes);
    }
    return this.#memory;
  }

  #failures(ask: number, numCalls: number): (string | null)[] {
    const whys = Array<string | null>(numCalls).fill(null);
    for (;;) {
      const received = receiveMessageOnPort(this.#port);
      if (received === undefined) return whys;
      const reply = received.message as PostProcessorReply;
      if (reply.ask === ask) whys[reply.index] = reply.why;
    }
  }
}

/** The calls with the places of their logits, one after the other. */
function placesOf(calls: readonly PostProcessorCall[]): AskedCall[] {
  let numValues = 0;
  return calls.map(({ name, rows }) => ({
    name,
    rows: rows.map(({ view, ...rest }) => {
      const first = numValues;
      numValues += view.length;
      return { ...rest, first, length: view.length };
    }),
  }));
}

/** Calls `visit` with each request's logits and their place. */
function eachRow(
  calls: readonly PostProcessorCall[],
  asked: readonly AskedCall[],
  visit: (view: Float32Array, place: { first: number; length: number }) => void,
): void {
  for (const [i, { rows }] of asked.entries()) {
    for (const [row, place] of rows.entries()) visit(calls[i]!.rows[row]!.view, place);
  }
}

/** Returns how many calls have ended, from the first on. */
function wait(cells: Int32Array, numCalls: number, timeLimitMs: number): number {
  let done = 0;
  while (done < numCalls) {
    const outcome = Atomics.wait(cells, DONE, done, timeLimitMs);
    const now = Atomics.load(cells, DONE);
    if (outcome === 'timed-out' && now === done) break;
    done = now;
  }
  return done;
}

function whyLate(name: string, isItself: boolean, timeLimitMs: number): string {
  const what = `The logits post-processor ${name} did not end within its time limit of ${timeLimitMs} ms`;
  return isItself
    ? `${what}, or the thread that it runs in was busy.`
    : `${what}; this request's came after it.`;
}
