import { noteFreed } from '../../../base/buffer-pool.js';
import { textOf } from '../../../base/skein-error.js';
import type { AdapterLimits } from '../../../models/adapters/adapter-weights.js';
import type { SharedAdapter } from '../../../models/adapters/shared-adapter.js';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { OutsideError } from '../../../models/checkpoints/open-only-below.js';
import { HelperError, HelperPool } from '../../../models/helper-pool.js';
import type { ModelConfig } from '../../../models/model-config.js';

/** An adapter's files, to be read in the reader's thread. */
export interface AdapterToRead {
  path: string;
  /** Configuration of the base model. */
  config: ModelConfig;
  limits: AdapterLimits;
  /** Folder, without links, in which its files have to lie; null: they may lie anywhere. */
  within: string | null;
}

export interface ReadAdapter {
  weights: SharedAdapter;
  /** Digest of the weights. */
  digest: string;
}

/** Milliseconds in which an adapter is read, from a slow disk too. */
const TIME_LIMIT_MS = 120_000;
/** Most adapters that are read or wait for it at a time. */
const MAX_JOBS = 64;

/** Reads adapters in a thread, which lives only while there is something to read: one of a gigabyte takes seconds. */
export class AdapterReader {
  #pool: HelperPool<AdapterToRead, ReadAdapter> | null = null;

  /** @throws CheckpointError that says what is wrong with a file; HelperBusyError, HelperTimeError, HelperClosedError */
  async read(job: AdapterToRead, signal?: AbortSignal): Promise<ReadAdapter> {
    const script = new URL('./adapter-read-worker.js', import.meta.url);
    this.#pool ??= new HelperPool({
      script,
      timeLimitMs: TIME_LIMIT_MS,
      maxJobs: MAX_JOBS,
      // Shared memory, which the garbage collector does not count.
      onDropped: ({ weights }) => noteFreed(weights.tensors.weights.byteLength),
    });
    const pool = this.#pool;
    try {
      return await pool.run(job, signal);
    } catch (error) {
      if (!(error instanceof HelperError)) throw error;
      if (error.failure.code === 'SKEIN_OUTSIDE') throw new OutsideError(textOf(error));
      throw error.failure.code === 'SKEIN_CHECKPOINT' ? new CheckpointError(textOf(error)) : error;
    } finally {
      if (pool.jobs === 0 && this.#pool === pool) await this.close();
    }
  }

  /** Fails what is being read. */
  async close(): Promise<void> {
    const pool = this.#pool;
    this.#pool = null;
    await pool?.close();
  }
}
