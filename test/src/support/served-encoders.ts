import type { EncoderSequence } from '../../../callbacks/encoder-messages.js';
import { encodeBatch } from '../../../engine/encoder/encode-batch.js';
import { type LoadedEncoder, loadEncoder } from '../../../engine/encoder/load-encoder.js';
import { EncoderCodec } from '../../../src/encoding/encoder-codec.js';
import { createApp } from '../../../src/server/app/app.js';
import { ServerMetrics } from '../../../src/server/metrics/families/server-metrics.js';
import { MemoryLedger } from '../../../src/server/web/memory/held-memory.js';
import { ServerState } from '../../../src/server/web/server-state.js';
import { ModelState } from '../../../src/serving/model-state.js';
import type { ServedEncoder, ServedModel } from '../../../src/serving/served-model.js';
import { TestEngines, tinyModelPath } from '../../../tools/support/test-engine.js';
import { directoryOf, ToldStatistics } from './served-models.js';

/** Tiny encoders, computed in this thread, for as long as a test file runs. */
export class ServedEncoders {
  readonly #engines = new TestEngines();
  readonly #open: { encoder: LoadedEncoder; codec: EncoderCodec }[] = [];

  /** An encoder under a name. @param model name of a fixture, or a folder */
  async open(id: string, model: string, change: Partial<ServedEncoder> = {}): Promise<ServedEncoder> {
    const { directory } = await this.#engines.get(model.includes('/') ? model : tinyModelPath(model), 'f32');
    const encoder = await loadEncoder(directory, { threads: 1 });
    const codec = await EncoderCodec.open(directory, encoder.config);
    this.#open.push({ encoder, codec });
    const { outputWidth, limits, config } = encoder;
    return {
      kind: 'encoder',
      id,
      aliases: [],
      created: 0,
      maxSeqLen: limits.maxSeqLen,
      state: new ModelState(),
      statistics: new ToldStatistics(() => ({ running: 0, waiting: 0 })),
      outputWidth,
      vocabSize: encoder.vocabSize,
      head: config.head,
      codec,
      engine: {
        encode: async (sequences) => sequences.map((sequence) => computed(encoder, sequence)),
      },
      ...change,
    };
  }

  async close(): Promise<void> {
    for (const { encoder, codec } of this.#open) {
      encoder.close();
      await codec.close();
    }
    this.#engines.remove();
  }
}

function computed(encoder: LoadedEncoder, sequence: EncoderSequence): Float32Array {
  const { rows, errors } = encodeBatch(encoder, [sequence]);
  if (errors[0]) throw new Error(errors[0]);
  return rows[0]!;
}

// biome-ignore lint/suspicious/noExplicitAny: answers are what the tests judge
export type Post = (path: string, body: unknown) => Promise<{ status: number; body: any }>;

/** A server of models: its routes, and its metrics. @param ledger the memory that it has for requests. Default: much of the machine's */
export function serverOf(
  models: ServedModel[],
  ledger = new MemoryLedger(),
): { post: Post; metricsText: () => Promise<string> } {
  const directory = directoryOf(...models);
  const metrics = new ServerMetrics(directory);
  const app = createApp({
    models: directory,
    state: new ServerState(directory),
    ledger,
    metrics,
    version: '0.0.0-test',
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
  });
  const post: Post = async (path, body) => {
    const headers = { 'content-type': 'application/json' };
    const response = await app.request(path, { method: 'POST', headers, body: JSON.stringify(body) });
    return { status: response.status, body: await response.json() };
  };
  return { post, metricsText: () => metrics.text() };
}
