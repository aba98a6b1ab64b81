import { rm } from 'node:fs/promises';
import { type Answered, readAnswered } from '../../batch/batch-files.js';
import { LineFile } from '../../batch/line-file.js';
import type { Lines } from '../../batch/run-batch.js';
import { noRoomForFile, notStored } from '../files/file-errors.js';
import type { FileStore } from '../files/file-store.js';
import type { Batch } from './batch-object.js';

/** One of the files that a batch's answers go to. Its bytes count as those of other files do. */
class AnswerFile implements Lines {
  readonly #store: FileStore;
  readonly #owner: string;
  readonly #id: string;
  readonly #file: LineFile;

  private constructor(store: FileStore, owner: string, id: string, file: LineFile) {
    this.#store = store;
    this.#owner = owner;
    this.#id = id;
    this.#file = file;
  }

  /** Goes on behind the answers that it has. */
  static async open(store: FileStore, owner: string, id: string, bytes: number): Promise<AnswerFile> {
    const file = await LineFile.open(await store.pathOf(id), bytes);
    store.account.count(owner, { files: 1, bytes });
    return new AnswerFile(store, owner, id, file);
  }

  /** @throws ApiError where there is no room, or the disk gives an error. */
  async write(json: string): Promise<void> {
    const before = this.#file.bytes;
    const lack = this.#store.account.lack(this.#owner, { files: 0, bytes: Buffer.byteLength(json) + 1 });
    if (lack !== null) throw noRoomForFile(lack);
    const writing = this.#file.write(json);
    this.#store.account.count(this.#owner, { files: 0, bytes: this.#file.bytes - before });
    await writing;
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  /** Makes a file of it that its owner finds; false where it is empty and is dropped. */
  async publish(filename: string, lifeSeconds: number | undefined): Promise<boolean> {
    const { bytes } = this.#file;
    if (bytes > 0) {
      const facts = { filename, purpose: 'batch_output', lifeSeconds } as const;
      await this.#store.record(this.#id, this.#owner, bytes, facts);
      return true;
    }
    this.#store.account.count(this.#owner, { files: -1, bytes: 0 });
    await rm(this.#file.path, { force: true });
    return false;
  }
}

/** The files of a batch that runs: answers, and what could not be answered. */
export class AnswerFiles {
  readonly output: Lines;
  readonly errors: Lines;
  readonly #files: readonly [AnswerFile, AnswerFile];
  readonly #batch: Batch;

  private constructor(batch: Batch, output: AnswerFile, errors: AnswerFile) {
    this.#batch = batch;
    this.#files = [output, errors];
    this.output = output;
    this.errors = errors;
  }

  static async open(store: FileStore, batch: Batch, before: AnswersSoFar): Promise<AnswerFiles> {
    const { owner, outputId, errorsId } = batch;
    const output = await AnswerFile.open(store, owner, outputId, before.output.bytes);
    return new AnswerFiles(batch, output, await AnswerFile.open(store, owner, errorsId, before.errors.bytes));
  }

  async close(): Promise<void> {
    for (const file of this.#files) await file.close();
  }

  /** Makes the files, once closed, known to their owner. */
  async publish(): Promise<{ hasOutput: boolean; hasErrors: boolean }> {
    const { id, outputLifeSeconds } = this.#batch;
    const life = outputLifeSeconds ?? undefined;
    const [output, errors] = this.#files;
    return {
      hasOutput: await output.publish(`${id}_output.jsonl`, life),
      hasErrors: await errors.publish(`${id}_error.jsonl`, life),
    };
  }
}

/** What a batch's files hold. */
export interface AnswersSoFar {
  output: Answered;
  errors: Answered;
  /** The requests with a line in either. */
  customIds: Set<string>;
}

/** Reads what was answered before, by this process or one before it. @throws ApiError */
export async function answersSoFar(store: FileStore, { outputId, errorsId }: Batch): Promise<AnswersSoFar> {
  try {
    const output = await readAnswered(await store.pathOf(outputId));
    const errors = await readAnswered(await store.pathOf(errorsId));
    return { output, errors, customIds: new Set([...output.customIds, ...errors.customIds]) };
  } catch (error) {
    throw notStored(error);
  }
}
