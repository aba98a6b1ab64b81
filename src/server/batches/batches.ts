import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { StoreError } from '../../../base/store-errors.js';
import type { BATCH_URLS } from '../../batch/batch-line.js';
import { Slots } from '../../batch/slots.js';
import { orNotStored } from '../files/file-errors.js';
import { type FileStore, newFileId, nowSeconds } from '../files/file-store.js';
import { FolderRecords } from '../files/folder-records.js';
import { MemoryRecords } from '../files/memory-records.js';
import type { Look, Presence, RecordStore } from '../files/record-store.js';
import type { ApiKeys, Caller } from '../web/access/api-keys.js';
import { ApiError } from '../web/errors.js';
import type { ServerLog } from '../web/server-log.js';
import { type Batch, hasEnded, inState, NO_PROGRESS, windowSeconds } from './batch-object.js';
import { BatchStore, type HeldEvents } from './batch-store.js';
import { type BatchServices, BatchTask } from './batch-task.js';
import { MAX_ID_LENGTH } from './validate-input.js';

/** Answers a request of a caller as the server would. */
export type AnswerFor = (request: Request, caller: Caller) => Response | Promise<Response>;

export interface BatchesOptions {
  files: FileStore;
  log: ServerLog;
  /** Most requests of all batches at once. */
  maxRequests: number;
  /** Bytes of the longest line. */
  maxLineBytes: number;
  apiKeys: ApiKeys;
  /** Records that other servers share, and which of those are there; default: those of the files' folder, for this server alone. */
  shared?: { records: RecordStore; presence: Presence } | undefined;
}

/** What a client asks of a new batch. */
export interface NewBatch {
  inputFileId: string;
  endpoint: (typeof BATCH_URLS)[number];
  completionWindow: string;
  metadata: Readonly<Record<string, string>> | null;
  outputLifeSeconds: number | null;
}

/** Most batches that run at once, and most of one of several API keys. */
const MAX_RUNNING = 8;
const MAX_RUNNING_PER_KEY = 2;
/** Number of file names that one log line lists. */
const MAX_TOLD = 10;
/** Milliseconds between two looks for what has expired. */
const SWEEP_MS = 600_000;
/** Milliseconds between two looks for what other servers have done, or left. */
const EXCHANGE_MS = 1_500;

const paused = () => new DOMException('The server ends; the batch goes on with the next one.', 'AbortError');

/** The batches of all API keys, and the tasks of those that have not ended. */
export class Batches {
  readonly #options: BatchesOptions;
  readonly #store: BatchStore;
  readonly #services: BatchServices;
  readonly #tasks = new Map<string, BatchTask>();
  readonly #pause = new AbortController();
  readonly #begin: () => void;
  #answer: AnswerFor | null = null;
  #loading: Promise<void> | null = null;
  #sweeping: NodeJS.Timeout | undefined;
  readonly #lookWho: Look | null;
  #exchanging: NodeJS.Timeout | undefined;
  #exchange: Promise<void> | null = null;

  constructor(options: BatchesOptions) {
    const { files, log, maxRequests, maxLineBytes, apiKeys, shared } = options;
    const isShared = () => apiKeys.isShared;
    this.#options = options;
    this.#lookWho = shared?.presence.looker() ?? null;
    const folder = async () => (await files.storage.paths()).batches;
    const own = files.isKept ? new FolderRecords(folder) : new MemoryRecords();
    const records = shared?.records ?? own;
    this.#store = new BatchStore(records, shared?.presence.id ?? null, isShared);
    files.isInput = async (id) =>
      (await this.#store.all()).some((batch) => batch.inputFileId === id && !hasEnded(batch));
    let begin = () => {};
    const started = new Promise<void>((resolve) => {
      begin = resolve;
    });
    this.#begin = begin;
    this.#services = {
      files,
      log,
      store: this.#store,
      slots: {
        readings: new Slots(1),
        batches: new Slots(MAX_RUNNING, () => (isShared() ? MAX_RUNNING_PER_KEY : MAX_RUNNING)),
        requests: new Slots(maxRequests),
      },
      rulesOf: ({ endpoint }) => ({ maxLineBytes, maxIdLength: MAX_ID_LENGTH, urls: [endpoint] }),
      started,
      pause: this.#pause.signal,
    };
  }

  /** Sets what answers requests; before anything else. */
  answerWith(answer: AnswerFor): void {
    this.#answer = answer;
  }

  /** There are models to ask: batches run from now on, those of a server before this one too. */
  start(): void {
    this.#begin();
    const { files, log } = this.#options;
    const sweep = () => {
      this.#sweep().catch((error: unknown) => log.warn({ err: error }, 'files not looked through'));
    };
    this.#sweeping ??= setInterval(sweep, SWEEP_MS).unref();
    if (!files.isKept) return;
    if (files.isShared) this.#exchanging ??= setInterval(() => this.#look(), EXCHANGE_MS).unref();
    this.load().catch((error: unknown) => log.error({ err: error }, 'batches not read'));
  }

  async #sweep(): Promise<void> {
    const { files } = this.#options;
    await files.sweep();
    if (files.isShared) await this.#dropStrays();
  }

  /** Looks for what other servers have done, or left. One look at a time. */
  #look(): void {
    if (this.#exchange !== null || this.#pause.signal.aborted) return;
    this.#exchange = this.#goOnOfOthers()
      // Requests of clients report a store that cannot be reached.
      .catch(() => {})
      .finally(() => {
        this.#exchange = null;
      });
  }

  /** Continues the batches of servers that are gone. */
  async #goOnOfOthers(): Promise<void> {
    const { presence } = this.#options.shared!;
    await this.#store.exchange();
    const live = await this.#store.ofOthers();
    const gone = await this.#lookWho!(live.flatMap(({ batch }) => batch.holder ?? []));
    for (const { batch, revision } of live) {
      if (this.#pause.signal.aborted) return;
      const isLeft = batch.holder === undefined || gone.has(batch.holder) || batch.holder === presence.id;
      if (isLeft) await this.#claimOwn(batch, revision);
    }
  }

  /** Continues a batch; one whose files are damaged does not stop the rest. */
  async #claimOwn(batch: Batch, revision: number): Promise<void> {
    try {
      if (await this.#hasOwnFiles(batch)) await this.#claim(batch, revision);
    } catch (error) {
      if (!(error instanceof StoreError) || error.kind !== 'foreign') throw error;
      this.#options.log.warn({ err: error, batch: batch.id }, 'a batch cannot be gone on with');
    }
  }

  /** Reads what is in a given folder, and continues it; once. @throws ApiError */
  async load(): Promise<void> {
    if (this.#options.files.isShared) return;
    this.#loading ??= this.#load().catch((error: unknown) => {
      this.#loading = null;
      throw orNotStored(error);
    });
    await this.#loading;
  }

  async #load(): Promise<void> {
    const { files } = this.#options;
    await files.load();
    if (!files.isKept) return;
    const unread = await this.#store.unread();
    if (unread.length > 0)
      this.#options.log.warn({ files: unread.slice(0, MAX_TOLD) }, 'no records of batches');
    await this.#dropStrays();
    for (const { batch, revision } of await this.#store.ofOthers())
      if (await this.#hasOwnFiles(batch)) await this.#claim(batch, revision);
  }

  async #dropStrays(): Promise<void> {
    const live: Batch[] = [];
    for (const batch of await this.#store.all())
      if (!hasEnded(batch) && (await this.#hasOwnFiles(batch))) live.push(batch);
    const answers = live.flatMap(({ outputId, errorsId }) => [outputId, errorsId]);
    await this.#options.files.dropStrays(new Set(answers));
  }

  /** A record may name files of another API key, which it neither reads nor writes. */
  async #hasOwnFiles({ id, owner, inputFileId, outputId, errorsId }: Batch): Promise<boolean> {
    for (const file of [inputFileId, outputId, errorsId]) {
      const found = await this.#options.files.find(file);
      if (found === null || found.owner === owner) continue;
      this.#options.log.warn({ batch: id }, 'the record of this batch names files of another API key');
      return false;
    }
    return true;
  }

  async #claim(batch: Batch, revision: number): Promise<void> {
    // Where its key is gone the batch waits for a server that has it.
    const caller = this.#options.apiKeys.callerNamed(batch.owner);
    if (caller !== null && (await this.#store.hold(batch, revision, this.#eventsOf(batch.id))))
      this.#launch(this.#store.latest(batch), caller);
  }

  #eventsOf(id: string): HeldEvents {
    return {
      cancelled: () => this.#tasks.get(id)?.cancel(),
      takenOver: () => this.#tasks.get(id)?.takenOver(),
    };
  }

  #launch(batch: Batch, caller: Caller): void {
    const task = new BatchTask(this.#services, batch, (request) => this.#answer!(request, caller));
    this.#tasks.set(batch.id, task);
    void task.done.finally(() => {
      this.#tasks.delete(batch.id);
      this.#store.letGo(batch);
    });
  }

  /** The caller's own batches; those of others are not visible. */
  of(caller: Caller): OwnBatches {
    return new OwnBatches(this, caller);
  }

  async create(caller: Caller, asked: NewBatch): Promise<Batch> {
    await this.load();
    const { inputFileId, completionWindow } = asked;
    const file = await this.#options.files.of(caller).get(inputFileId, 'input_file_id');
    if (file.purpose !== 'batch') {
      throw new ApiError(
        400,
        `The file '${file.id}' has the purpose '${file.purpose}'; it must be 'batch'.`,
        {
          param: 'input_file_id',
          code: 'invalid_purpose',
        },
      );
    }
    const createdAt = nowSeconds();
    const batch: Batch = {
      id: `batch_${randomUUID().replaceAll('-', '')}`,
      owner: caller.name,
      ...asked,
      outputId: newFileId(),
      errorsId: newFileId(),
      status: 'validating',
      createdAt,
      expiresAt: createdAt + windowSeconds(completionWindow)!,
      times: {},
      faults: [],
      counts: NO_PROGRESS,
      hasOutput: false,
      hasErrors: false,
    };
    // The file must not go while the record is written.
    const letGo = this.#options.files.use(inputFileId);
    try {
      await this.#store.add(batch, this.#eventsOf(batch.id));
      const begun = this.#store.latest(batch);
      this.#launch(begun, caller);
      return begun;
    } catch (error) {
      throw orNotStored(error);
    } finally {
      letGo();
    }
  }

  async list(owner: string): Promise<Batch[]> {
    await this.load();
    return this.#store.list(owner);
  }

  async get(owner: string, id: string): Promise<Batch> {
    await this.load();
    const batch = await this.#store.get(owner, id);
    if (batch !== null) return batch;
    throw notFound(id);
  }

  /** Ends a batch with the answers that it has. @throws ApiError 404; 400 where it has ended. */
  async cancel(owner: string, id: string): Promise<Batch> {
    await this.load();
    const task = this.#tasks.get(id);
    const batch = await this.#store.change(owner, id, (now) => {
      const { status } = now;
      if (status === 'cancelling') return now;
      const isOver = status === 'finalizing' || hasEnded(now);
      if (!isOver && (task !== undefined || this.#options.files.isShared)) {
        // Where another server runs it, that one finds it in the record.
        task?.cancel();
        return inState(now, 'cancelling', nowSeconds());
      }
      throw new ApiError(400, `The batch '${id}' cannot be cancelled: its status is '${status}'.`, {
        code: 'batch_not_active',
      });
    });
    if (batch === null) throw notFound(id);
    return batch;
  }

  /** Begins no further requests, and waits for those under way. @returns true where they ended in time */
  async drain(limitMs: number): Promise<boolean> {
    this.#pause.abort(paused());
    const all = Promise.all(this.#running());
    const timer = new AbortController();
    const late = delay(limitMs, false, { signal: timer.signal }).catch(() => false);
    const isDone = await Promise.race([all.then(() => true), late]);
    timer.abort();
    return isDone;
  }

  /** Drops what is under way, and removes a temporary folder. */
  async close(): Promise<void> {
    this.#pause.abort(paused());
    clearInterval(this.#sweeping);
    clearInterval(this.#exchanging);
    for (const task of this.#tasks.values()) task.drop();
    await Promise.all([...this.#running(), this.#exchange]);
    await this.#options.files.close();
  }

  #running(): Promise<void>[] {
    return [...this.#tasks.values()].map(({ done }) => done);
  }
}

function notFound(id: string): ApiError {
  return new ApiError(404, `There is no batch '${id}': it was never made, or is no longer kept.`, {
    code: 'batch_not_found',
  });
}

/** Batches of one API key. */
class OwnBatches {
  readonly #batches: Batches;
  readonly #caller: Caller;

  constructor(batches: Batches, caller: Caller) {
    this.#batches = batches;
    this.#caller = caller;
  }

  /** @throws ApiError 404 for the file, 429 where too many have not ended. */
  create(asked: NewBatch): Promise<Batch> {
    return this.#batches.create(this.#caller, asked);
  }

  list(): Promise<Batch[]> {
    return this.#batches.list(this.#caller.name);
  }

  /** @throws ApiError 404. */
  get(id: string): Promise<Batch> {
    return this.#batches.get(this.#caller.name, id);
  }

  /** Ends a batch with the answers that it has. @throws ApiError 404; 400 where it has ended. */
  cancel(id: string): Promise<Batch> {
    return this.#batches.cancel(this.#caller.name, id);
  }
}
