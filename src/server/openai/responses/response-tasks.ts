import { setTimeout as delay } from 'node:timers/promises';
import { StoreError } from '../../../../base/store-errors.js';
import type { ContentStore, Look, Presence, RecordStore, StoredRecord } from '../../files/record-store.js';
import type { ApiKeys, Caller } from '../../web/access/api-keys.js';
import { ApiError } from '../../web/errors.js';
import type { ServerLog } from '../../web/server-log.js';
import { EventSplicer, eventsIn, framesIn } from './event-splicer.js';
import { HeldTask } from './held-task.js';
import { type Origin, type ResponseTask, readTask, readTaskInput, type TaskInput } from './response-task.js';

export interface ResponseTasksOptions {
  records: RecordStore;
  contents: ContentStore;
  presence: Presence;
  apiKeys: ApiKeys;
  log: ServerLog;
}

/** A task that this server continues. */
export interface Resumed {
  caller: Caller;
  task: ResponseTask;
  input: TaskInput;
  origin: Origin;
  /** Frames of its events that were sent. */
  told: readonly string[];
  held: HeldTask;
}

/** Continues a task; resolves when it is being made. @throws ApiError where it cannot be made now */
export type Resume = (resumed: Resumed) => Promise<void>;

/** Milliseconds between two looks for what other servers have done, or left. */
const LOOK_MS = 1_000;
/** Milliseconds between two looks whether a response has ended that another server makes, and all of them. */
const POLL_MS = 100;
const CANCEL_MS = 30_000;
/** Attempts to change a task, where another server has changed it meanwhile. */
const TRIES = 16;
const TASKS = 'tasks';
const INPUTS = 'inputs';
const ID = /^resp_[0-9a-f]{48}$/;

/**
 * Responses made in the background, by any of the servers that share them. Each is made by one server, whose
 * id is in its record; if that server is gone, another one generates the answer again and continues after
 * what was already sent.
 *
 *   tasks.ID     who makes it for whom, and whether it is still wanted
 *   inputs.ID    what it is made of
 *   content ID   its events so far
 */
export class ResponseTasks {
  readonly #options: ResponseTasksOptions;
  readonly #held = new Map<string, HeldTask>();
  readonly #tasks = new WeakMap<StoredRecord, ResponseTask | null>();
  readonly #lookWho: Look;
  #resume: Resume | null = null;
  #looking: NodeJS.Timeout | undefined;
  #look: Promise<void> | null = null;
  #isLeaving = false;

  constructor(options: ResponseTasksOptions) {
    this.#options = options;
    this.#lookWho = options.presence.looker();
  }

  /** Sets the function that continues tasks; before anything else. */
  resumeWith(resume: Resume): void {
    this.#resume = resume;
  }

  /** There are models to ask: tasks of servers that are gone are gone on with from now on. */
  start(): void {
    this.#looking ??= setInterval(() => {
      if (this.#look !== null || this.#isLeaving) return;
      this.#look = this.#lookOnce()
        // Requests of clients tell of a store that is away.
        .catch(() => {})
        .finally(() => {
          this.#look = null;
        });
    }, LOOK_MS).unref();
  }

  /** This server ends: what it makes is left for others. */
  async leave(): Promise<void> {
    this.#isLeaving = true;
    clearInterval(this.#looking);
    for (const held of this.#held.values()) held.leave();
    await this.#look;
  }

  /** Accepts a task that this server makes; its record is written. @throws the store's errors */
  async accept(task: Omit<ResponseTask, 'holder'>, input: TaskInput): Promise<HeldTask> {
    const { records, presence } = this.#options;
    const { id } = task.response;
    await records.put(`${INPUTS}.${id}`, JSON.stringify(input), 0);
    const own = { ...task, holder: presence.id };
    const revision = await records.put(`${TASKS}.${id}`, JSON.stringify(own), 0);
    return this.#hold(own, revision ?? 0, 0);
  }

  #hold(task: ResponseTask, revision: number, eventBytes: number): HeldTask {
    const { contents } = this.#options;
    const { id } = task.response;
    const held: HeldTask = new HeldTask(task, eventBytes, {
      content: (bytes) => contents.goOn(id, bytes),
      eventBytes: async () => (await contents.size(id)) ?? 0,
      confirm: () => this.#confirm(held),
      remove: () => this.#remove(id),
      over: () => this.#held.delete(id),
    });
    held.revision = revision;
    this.#held.set(id, held);
    if (this.#isLeaving) held.leave();
    return held;
  }

  /** True where this server has the task still; what others have changed of it is known then. */
  async #confirm(held: HeldTask): Promise<boolean> {
    const { records, presence } = this.#options;
    const { id } = held.task.response;
    for (let tried = 1; tried <= TRIES; tried++) {
      const written = await records.put(`${TASKS}.${id}`, JSON.stringify(held.task), held.revision);
      if (written !== null) {
        held.revision = written;
        return true;
      }
      const found = await this.#find(id);
      if (found === null || found.task.holder !== presence.id) return false;
      held.meet(found.task, found.revision);
    }
    return false;
  }

  async #remove(id: string): Promise<void> {
    const { records, contents } = this.#options;
    // Without its task the rest has no owner.
    await records.remove(`${TASKS}.${id}`);
    await records.remove(`${INPUTS}.${id}`);
    await contents.remove(id);
  }

  /** A task of an owner; null: there is none. @throws the store's errors */
  async find(owner: string, id: string): Promise<ResponseTask | null> {
    const found = await this.#find(id);
    return found === null || found.task.owner !== owner || found.task.isDiscarded ? null : found.task;
  }

  async #find(id: string): Promise<{ task: ResponseTask; revision: number } | null> {
    if (!ID.test(id)) return null;
    const record = await this.#options.records.get(`${TASKS}.${id}`);
    return record === null ? null : { task: readTask(id, record.text), revision: record.revision };
  }

  /** What a task is made of; null: it is not there any more. */
  async input(id: string): Promise<TaskInput | null> {
    const record = await this.#options.records.get(`${INPUTS}.${id}`);
    return record === null ? null : readTaskInput(id, record.text);
  }

  /** The events of a task so far, from a number of bytes on that were read before. */
  async events(id: string, from = 0): Promise<string> {
    const pieces: Buffer[] = [];
    for await (const piece of (await this.#options.contents.read(id, from)) ?? []) pieces.push(piece);
    return Buffer.concat(pieces).toString();
  }

  /** Marks a task as no longer wanted for the server that makes it. @returns false where there is none */
  async stop(owner: string, id: string, how: 'isCancelled' | 'isDiscarded'): Promise<boolean> {
    for (let tried = 1; tried <= TRIES; tried++) {
      const found = await this.#find(id);
      if (found?.task.owner !== owner || found.task.isDiscarded) return false;
      const text = JSON.stringify({ ...found.task, [how]: true });
      const written = await this.#options.records.put(`${TASKS}.${id}`, text, found.revision);
      if (written !== null) return true;
    }
    throw new ApiError(503, `The response '${id}' changes all the time; ask again.`, {
      code: 'server_busy',
      headers: { 'retry-after': '1' },
    });
  }

  /** Resolves when a task has ended. @throws ApiError 503 where that takes too long */
  async ended(owner: string, id: string): Promise<void> {
    const end = performance.now() + CANCEL_MS;
    while ((await this.find(owner, id)) !== null) {
      if (performance.now() > end) {
        throw new ApiError(503, `The response '${id}' is being cancelled by another server; ask again.`, {
          code: 'server_busy',
          headers: { 'retry-after': '1' },
        });
      }
      await delay(POLL_MS);
    }
  }

  async #lookOnce(): Promise<void> {
    const { records, presence } = this.#options;
    const left: { id: string; task: ResponseTask; revision: number }[] = [];
    for (const record of await records.list(TASKS)) {
      const id = record.key.slice(TASKS.length + 1);
      const task = this.#taskOf(id, record);
      if (task === null) continue;
      const held = this.#held.get(id);
      if (held === undefined) left.push({ id, task, revision: record.revision });
      else if (record.revision > held.revision && task.holder !== presence.id) held.leave();
      else if (record.revision > held.revision) held.meet(task, record.revision);
    }
    const gone = await this.#lookWho(left.map(({ task }) => task.holder));
    for (const { id, task, revision } of left) {
      if (this.#isLeaving) return;
      if (task.holder !== presence.id && !gone.has(task.holder)) continue;
      await this.#goOn(id, task, revision).catch((error: unknown) => this.#told(id, error));
    }
  }

  #told(id: string, error: unknown): void {
    if (error instanceof StoreError && error.kind === 'away') return;
    this.#options.log.warn({ err: error, response: id }, 'a response cannot be gone on with now');
  }

  #taskOf(id: string, record: StoredRecord): ResponseTask | null {
    let task = this.#tasks.get(record);
    if (task !== undefined) return task;
    try {
      task = readTask(id, record.text);
    } catch {
      this.#options.log.warn({ record: record.key }, 'no record of a response');
      task = null;
    }
    this.#tasks.set(record, task);
    return task;
  }

  /** Continues a task whose server is gone. */
  async #goOn(id: string, left: ResponseTask, revision: number): Promise<void> {
    const { records, presence, apiKeys } = this.#options;
    // Where its key is gone it waits for a server that has it.
    const caller = apiKeys.callerNamed(left.owner);
    if (caller === null) return;
    const task = { ...left, holder: presence.id };
    const written = await records.put(`${TASKS}.${id}`, JSON.stringify(task), revision);
    if (written === null) return;
    const input = await this.input(id);
    if (input === null || task.isDiscarded) return this.#remove(id);
    const text = await this.events(id);
    const splicer = text === '' ? null : new EventSplicer(eventsIn(text));
    const held = this.#hold(task, written, Buffer.byteLength(text));
    try {
      const origin = { id, createdAt: task.response.created_at, splicer };
      await this.#resume!({ caller, task, input, origin, told: framesIn(text), held });
    } catch (error) {
      // It is tried again at the next look.
      this.#held.delete(id);
      throw error;
    }
  }
}
