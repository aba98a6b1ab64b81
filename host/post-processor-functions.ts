import { performance } from 'node:perf_hooks';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import {
  CELL_BYTES,
  DONE,
  type HostPostProcessors,
  LEFT,
  type PostProcessorAsk,
  type PostProcessorReply,
} from '../callbacks/host-post-processors.js';
import {
  BATCHED_POST_PROCESSOR,
  type LogitsPostProcessor,
  type LogitsPostProcessorBatched,
  type LogitsPostProcessors,
} from '../callbacks/logits-post-processor.js';
import { type PostProcessorFunctions, runPostProcessor } from '../callbacks/post-processor-call.js';

/** Functions of the host's thread that change logits: calls them when a worker asks for it. */
export class FunctionsOfHost implements PostProcessorFunctions {
  readonly batched: LogitsPostProcessorBatched | null;
  readonly #named: ReadonlyMap<string, LogitsPostProcessor>;
  readonly #timeLimitMs: number;

  constructor(
    named: LogitsPostProcessors,
    batched: LogitsPostProcessorBatched | undefined,
    timeLimitMs: number,
  ) {
    this.#named = new Map(Object.entries(named));
    this.batched = batched ?? null;
    this.#timeLimitMs = timeLimitMs;
  }

  get(name: string): LogitsPostProcessor | undefined {
    return this.#named.get(name);
  }

  /** Opens a way for one worker, whose port is to be transferred to it. The way ends with the worker. */
  open(): HostPostProcessors {
    const { port1, port2 } = new MessageChannel();
    port1.on('message', (ask: PostProcessorAsk) => this.#answer(ask, port1));
    // The worker keeps the process alive; this way does not.
    port1.unref();
    const names = [...this.#named.keys(), ...(this.batched === null ? [] : [BATCHED_POST_PROCESSOR])];
    return { names, port: port2 };
  }

  #answer({ ask, calls, memory }: PostProcessorAsk, port: MessagePort): void {
    const cells = new Int32Array(memory, 0, CELL_BYTES / Int32Array.BYTES_PER_ELEMENT);
    for (const [index, { name, rows }] of calls.entries()) {
      if (Atomics.load(cells, LEFT) === 1) return;
      const views = rows.map(({ first, length, ...rest }) => ({
        ...rest,
        view: new Float32Array(memory, CELL_BYTES + first * Float32Array.BYTES_PER_ELEMENT, length),
      }));
      const call = { name, rows: views };
      const why = runPostProcessor(this, call, this.#timeLimitMs, () => performance.now());
      if (why !== null) port.postMessage({ ask, index, why } satisfies PostProcessorReply);
      Atomics.add(cells, DONE, 1);
      Atomics.notify(cells, DONE);
    }
  }
}
