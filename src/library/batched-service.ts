import { isAbsolute } from 'node:path';
import { pathToFileURL } from 'node:url';
import { errorOf } from '../../base/error-record.js';
import { callback, numberIn, rule, SWITCH, shown, wholeNumber } from '../../base/option-values.js';
import type { ManagerState } from '../../callbacks/gpt-manager-options.js';
import { OPTIONAL_PARAMS } from '../../callbacks/options/optional-params.js';
import type { WorkerRestartOptions } from '../../callbacks/restart-policy.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import { HostClosedError, RequestError } from '../../callbacks/token-request.js';
import {
  type ServiceCommand,
  type ServiceMessage,
  type ServiceWorkerData,
  serviceWorkerScript,
} from '../../engine/service/service-messages.js';
import type { BatchEntry } from '../../host/batch/batch-duties.js';
import { BatchHost } from '../../host/batch/batch-host.js';
import { withOwnClass } from '../../host/engine-failure.js';
import type { CloseOptions } from '../../host/in-process-host.js';
import { serviceBatcher } from '../../scheduler/tensors/batcher-presets.js';
import { optionFault, type Rules } from '../options/option-faults.js';
import { type ServiceBatch, ServiceFormer } from './service/service-former.js';

export interface BatchedServiceOptions<Input = unknown, Output = unknown> {
  /** Elements that are gathered and processed as one batch; 1 to 10,000. */
  maxBatchSize: number;
  /** Seconds from the first element of a batch after which it goes, full or not; above 0, at most 1. Default 0.1. */
  timeoutSeconds?: number | undefined;
  /** Batches on their way at once, from the buffer to their results; 1 to 128. Default 32. */
  maxQueueSize?: number | undefined;
  /** Makes of a batch what the worker is sent. Default: the batch as it is. */
  preprocess?: ((batch: Input[]) => unknown) | undefined;
  /** Makes of what the worker has sent a result for each element of the batch. Default: it is that already. */
  postprocess?: ((result: never) => ArrayLike<Output> | Promise<ArrayLike<Output>>) | undefined;
  /** Callers that wait for a result at once; beyond, `doOne` rejects with a QueueFullError. Default 1,000,000. */
  maxWaiting?: number | undefined;
  /**
   * Seconds that the worker may take over a batch, after which it is ended and restarted; 0, the default: any
   * time.
   */
  workerTimeoutSeconds?: number | undefined;
  /** false: the worker is a thread of this process. Default true: a process of its own. */
  isolate?: boolean | undefined;
  /** What happens when the worker dies; false: nothing more is taken. */
  workerRestart?: WorkerRestartOptions | false | undefined;
  /** Failures that belong to no caller, such as the worker's end. Not given: they are warnings of the process. */
  onError?: ((error: Error) => void) | undefined;
}

const DEFAULT_MAX_WAITING = 1_000_000;

/** The batcher checks its own limits. */
const ANY = rule<unknown>('anything', () => true);
const RULES: Rules<BatchedServiceOptions> = {
  maxBatchSize: ANY,
  timeoutSeconds: ANY,
  maxQueueSize: ANY,
  preprocess: callback(),
  postprocess: callback(),
  maxWaiting: wholeNumber(1, Number.MAX_SAFE_INTEGER),
  workerTimeoutSeconds: numberIn({ min: 0, max: 1e6, integer: false }),
  isolate: SWITCH,
  workerRestart: OPTIONAL_PARAMS.workerRestart.values,
  onError: callback(),
};

interface Element<Input, Output> extends BatchEntry {
  input: Input;
  resolve(output: Output): void;
}

type Batch<Input, Output> = ServiceBatch<Element<Input, Output>>;
type Host<Input, Output> = BatchHost<
  Element<Input, Output>,
  Batch<Input, Output>,
  null,
  ServiceMessage,
  ServiceCommand
>;

/**
 * Serves single elements by a computation that takes many at once, in a process of its own:
 *
 *   doOne -> buffer -> batch -> preprocess -> | worker: preprocess, transform, postprocess | -> postprocess -> each caller's result
 *
 *   const service = new BatchedService({ maxBatchSize: 200 });
 *   await service.start(new URL('./squares.mjs', import.meta.url));     // exports a class as its default: see VectorTransformer
 *   const nine = await service.doOne(3);
 *   await service.stop();
 *
 * A batch goes when it is full or its first element has waited for timeoutSeconds; callers beyond wait. Batches keep their order, and stages
 * of different batches run at the same time. Whatever throws, in this process or in the worker, rejects the callers of that
 * batch alone. A subclass may have `preprocess` and `postprocess` of its own.
 */
export class BatchedService<Input = unknown, Output = unknown> {
  readonly #options: BatchedServiceOptions<Input, Output>;
  readonly #batching: ReturnType<typeof serviceBatcher>;
  #host: Host<Input, Output> | null = null;

  /** @throws BatcherLimitError for a limit of batches that is out of its range, ParameterError for any other option, or an unknown one */
  constructor(options: BatchedServiceOptions<Input, Output>) {
    const fault = optionFault('new BatchedService', '{ maxBatchSize: 32 }', options, RULES);
    if (fault !== null) throw new ParameterError(fault.option ?? 'options', fault.message);
    this.#options = { ...options };
    this.#batching = serviceBatcher(options);
  }

  /** 'stopped' before `start`, and after `stop`. */
  get state(): ManagerState {
    return this.#host?.state ?? 'stopped';
  }

  /** Worker process id; null without a worker. */
  get pid(): number | null {
    return this.#host?.pids[0] ?? null;
  }

  /** Makes of a batch what the worker is sent: something that can be copied to another process. */
  preprocess(batch: Input[]): unknown {
    const { preprocess } = this.#options;
    return preprocess ? preprocess(batch) : batch;
  }

  /** Makes of what the worker has sent for a batch a result for each of its elements, in order. */
  postprocess(result: unknown): ArrayLike<Output> | Promise<ArrayLike<Output>> {
    const { postprocess } = this.#options;
    return postprocess ? postprocess(result as never) : (result as ArrayLike<Output>);
  }

  /**
   * Starts the worker; resolves when it is ready.
   * @param workerModule URL, or absolute path, of a module whose default export is a class: see VectorTransformer
   * @param initArguments what the class is constructed with; it is copied to the worker
   * @throws rejects with a ParameterError for a module that is named in another way; with the reason where the worker cannot be started; with a RequestError where it was before and not stopped
   */
  async start(workerModule: string | URL, initArguments?: unknown): Promise<void> {
    if (this.#host !== null) throw new RequestError('The service was started before.', { kind: 'duplicate' });
    const host = this.#open({ module: moduleUrl(workerModule), initArguments });
    this.#host = host;
    try {
      await host.ready;
    } catch (error) {
      if (this.#host === host) this.#host = null;
      throw error;
    }
  }

  /**
   * The result for one element, in the batch that it comes into. An aborted signal rejects at once with its reason.
   * @throws rejects with HostClosedError where the service is not started, or is stopped meanwhile; QueueFullError; whatever is thrown for
   *   its batch in `preprocess`, `postprocess` or the worker; a RequestError where the worker ends, or gives too few results
   */
  async doOne(input: Input, signal?: AbortSignal): Promise<Output> {
    const host = this.#host;
    if (host === null) throw new HostClosedError('The service is not started.');
    return new Promise((resolve, reject) => {
      host.submit({ input, resolve, fail: reject, hasStarted: false, release: null }, signal);
    });
  }

  /**
   * Ends the worker; callers that still wait are rejected, unless `abort: false` lets them have their results. May be called at any time,
   * any number of times; resolves when the worker is gone. The service can be started again then.
   */
  async stop({ abort = true, terminateAfterMs = 0, ...options }: CloseOptions = {}): Promise<void> {
    const host = this.#host;
    if (host === null) return;
    await host.close({ abort, terminateAfterMs, ...options });
    if (this.#host === host) this.#host = null;
  }

  /** The same as `stop()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #open(data: ServiceWorkerData): Host<Input, Output> {
    const { isolate = true, workerRestart, onError, workerTimeoutSeconds = 0 } = this.#options;
    let preparing = Promise.resolve();
    let handingOut = Promise.resolve();
    const former = new ServiceFormer<Element<Input, Output>>(this.#batching, (batch) => {
      preparing = preparing.then(() => this.#prepare(batch, host, former));
    });
    const host: Host<Input, Output> = new BatchHost(
      {
        subject: 'The service',
        ownerName: () => 'The service',
        script: serviceWorkerScript(),
        data: () => data,
        batchesAhead: this.#batching.batchesAhead,
        maxEntries: this.#options.maxWaiting ?? DEFAULT_MAX_WAITING,
        timeLimitMs: Math.ceil(workerTimeoutSeconds * 1000),
        isolate,
        workerRestart,
        onError,
      },
      {
        former,
        noteReady: () => {},
        entriesOf: ({ entries }) => entries,
        pack: ({ prepared }) => ({ command: { type: 'batch', batch: prepared }, transfer: [] }),
        endsBatch: () => true,
        deliver: (message, batch) => {
          if (batch === null) return;
          handingOut = handingOut.then(() => this.#handOut(message, batch, host, former));
        },
        drop: () => former.noteOver(),
        lostError: (error) => new RequestError(`The service failed: ${error.message}`),
      },
    );
    return host;
  }

  async #prepare(
    batch: Batch<Input, Output>,
    host: Host<Input, Output>,
    former: ServiceFormer<Element<Input, Output>>,
  ): Promise<void> {
    try {
      batch.prepared = await this.preprocess(batch.entries.map(({ input }) => input));
      former.noteReady(batch);
    } catch (error) {
      for (const entry of batch.entries) host.fail(entry, error);
      former.noteOver();
    }
    host.wake();
  }

  async #handOut(
    message: ServiceMessage,
    { entries }: Batch<Input, Output>,
    host: Host<Input, Output>,
    former: ServiceFormer<Element<Input, Output>>,
  ): Promise<void> {
    try {
      if (message.type === 'thrown') throw withOwnClass(errorOf(message.error));
      const results = await this.postprocess(message.result);
      const count = typeof results === 'object' && results !== null ? results.length : undefined;
      if (count !== entries.length) {
        const got = count === undefined ? 'no list of results' : `${count} results`;
        throw new RequestError(`The service got ${got} for a batch of ${entries.length}.`);
      }
      for (const [i, entry] of entries.entries()) {
        if (!host.has(entry)) continue;
        host.settle(entry);
        entry.resolve(results[i]!);
      }
    } catch (error) {
      for (const entry of entries) host.fail(entry, error);
    }
    former.noteOver();
    host.wake();
  }
}

/** A path that is not absolute would be resolved next to this package's own files. @throws ParameterError */
function moduleUrl(workerModule: string | URL): string {
  if (workerModule instanceof URL) return workerModule.href;
  if (typeof workerModule === 'string') {
    if (isAbsolute(workerModule)) return pathToFileURL(workerModule).href;
    if (/^(file|data):/.test(workerModule)) return workerModule;
  }
  throw new ParameterError(
    'workerModule',
    `The worker's module is ${shown(workerModule)}; a URL or an absolute path is expected, such as new URL('./squares.mjs', import.meta.url).`,
  );
}
