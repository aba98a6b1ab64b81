import { type Answered, answeredIn, nothingAnswered } from '../../batch/batch-files.js';
import type { Lines } from '../../batch/run-batch.js';
import { noRoomForFile, notStored, orNotStored } from '../files/file-errors.js';
import type { FileStore } from '../files/file-store.js';
import type { ContentWriter } from '../files/record-store.js';
import type { Batch } from './batch-object.js';

/** One of the files that a batch's answers go to. Its bytes count as those of other files do. */
class AnswerFile implements Lines {
  readonly owner: string;
  readonly #store: FileStore;
  readonly #id: string;
  #content!: ContentWriter;
  #bytes: number;

  private constructor(store: FileStore, owner: string, id: string, bytes: number) {
    this.#store = store;
    this.owner = owner;
    this.#id = id;
    this.#bytes = bytes;
  }

  /** Appends to the answers already written. @throws ApiError */
  static async open(store: FileStore, owner: string, id: string, bytes: number): Promise<AnswerFile> {
    const file = new AnswerFile(store, owner, id, bytes);
    file.#content = await store.goOn(id, owner, bytes, file);
    return file;
  }

  /** Number of bytes of its lines, those included that are being written. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @throws ApiError where there is no room; the store's errors */
  async write(json: string): Promise<void> {
    const line = Buffer.from(`${json}\n`);
    const more = { files: 0, bytes: line.length };
    const lack = this.#store.account.lack(this.owner, more);
    if (lack !== null) throw noRoomForFile(lack);
    this.#store.account.count(this.owner, more);
    this.#bytes += line.length;
    await this.#content.append(line);
  }

  close(): Promise<void> {
    return this.#content.finish();
  }

  /** Makes a file of it that its owner finds; false where it is empty and is dropped. */
  async publish(filename: string, lifeSeconds: number | undefined): Promise<boolean> {
    if (this.#bytes === 0) {
      await this.#store.endEmpty(this.#id, this.owner);
      return false;
    }
    const facts = { filename, purpose: 'batch_output', lifeSeconds } as const;
    await this.#store.record(this.#id, this.owner, this.#bytes, facts);
    return true;
  }

  /** It does not count any more, where it was not published. */
  letGo(): void {
    this.#store.letGo(this.#id);
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
    try {
      return new AnswerFiles(
        batch,
        output,
        await AnswerFile.open(store, owner, errorsId, before.errors.bytes),
      );
    } catch (error) {
      output.letGo();
      throw error;
    }
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

  /** What was not published does not count any more. */
  letGo(): void {
    for (const file of this.#files) file.letGo();
  }
}

/** What a batch's files hold. */
export interface AnswersSoFar {
  output: Answered;
  errors: Answered;
  /** The requests with a line in either. */
  customIds: Set<string>;
}

/** Reads what was answered before, by this process or one before it. @throws ApiError; the store's errors */
export async function answersSoFar(store: FileStore, { outputId, errorsId }: Batch): Promise<AnswersSoFar> {
  try {
    const output = await answeredOf(store, outputId);
    const errors = await answeredOf(store, errorsId);
    return { output, errors, customIds: new Set([...output.customIds, ...errors.customIds]) };
  } catch (error) {
    throw orNotStored(error);
  }
}

async function answeredOf(store: FileStore, id: string): Promise<Answered> {
  const content = await store.content(id);
  if (content === null) return nothingAnswered();
  return answeredIn(content, (line) =>
    notStored(new Error(`${id} has a line ${line} that is no answer of a batch.`)),
  );
}
