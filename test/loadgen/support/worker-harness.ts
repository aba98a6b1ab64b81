import type { BackendOptions } from '../../../loadgen/backends/backend.js';
import { monotonicMs } from '../../../loadgen/clock.js';
import { RecordList, type RequestRecord } from '../../../loadgen/records.js';
import type { Sample } from '../../../loadgen/samples.js';
import type { FromWorker, WorkerConfig } from '../../../loadgen/worker/frames.js';
import { LoadWorker } from '../../../loadgen/worker/load-worker.js';

/** A worker in this process, its frames kept. */
export class WorkerHarness {
  readonly frames: FromWorker[] = [];
  readonly worker: LoadWorker;
  readonly startMs = monotonicMs();
  #next = 0;

  constructor(url: string, config: Partial<WorkerConfig> = {}, backend: Partial<BackendOptions> = {}) {
    this.worker = new LoadWorker(
      {
        worker: 0,
        origin: url,
        backend: {
          name: 'chat',
          model: 'fake',
          stream: true,
          ignoreEos: false,
          fields: {},
          ...backend,
        },
        headers: {},
        tls: {},
        connections: 0,
        maxInFlight: 64,
        keepAlive: true,
        timeoutMs: 60_000,
        stallMs: 60_000,
        retries: 0,
        busyWait: false,
        ...config,
      },
      (frame) => this.frames.push(frame),
    );
  }

  async begin(concurrency: number | null): Promise<void> {
    await this.worker.prepare();
    this.worker.receive({ type: 'begin', startMs: this.startMs, concurrency });
  }

  /** Hands in samples; `atMs` counts from now, and is left out in a closed loop. */
  issue(samples: readonly Sample[], atMs: readonly number[] = []): void {
    const requests = samples.map((sample) => {
      const request = this.#next;
      this.#next += sample.turns.length;
      return request;
    });
    const now = monotonicMs();
    this.worker.receive({
      type: 'issue',
      requests,
      sampleNumbers: requests,
      samples: [...samples],
      keepSamples: false,
      atMs: atMs.map((ms) => now + ms),
    });
  }

  /** Requests handed in so far. */
  get issued(): number {
    return this.#next;
  }

  get records(): RequestRecord[] {
    const list = new RecordList();
    for (const frame of this.frames) if (frame.type === 'results') list.append(frame.records);
    return [...list].sort((a, b) => a.request - b.request);
  }

  /** Waits until `count` requests are over (all that were handed in), and returns their records. */
  async settled(count = this.issued): Promise<RequestRecord[]> {
    while (this.records.length < count) await new Promise((resolve) => setTimeout(resolve, 5));
    return this.records;
  }

  messages(): string[] {
    return this.frames.flatMap((frame) =>
      frame.type === 'results' ? frame.messages.map(({ message }) => message) : [],
    );
  }
}

export const say = (prompt: string, maxTokens = 4): Sample => ({ turns: [{ prompt, maxTokens }] });
