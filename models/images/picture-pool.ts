import { onAbort } from '../../base/on-abort.js';
import {
  HelperBusyError,
  HelperClosedError,
  HelperError,
  HelperLostError,
  HelperPool,
  HelperTimeError,
} from '../helper-pool.js';
import { ByteBudget } from './byte-budget.js';
import { pictureHeader, uprightSize } from './files/picture-header.js';
import { PictureDecoderError, PictureError, PicturesBusyError } from './picture-error.js';
import { checkFiles, PICTURE_LIMITS, type PictureLimits } from './picture-limits.js';
import { type PictureJob, type PreparedPicture, preparationBytes } from './prepare-picture.js';
import { picturePreprocessor } from './preprocess/index.js';
import type { PictureFiles, PicturePlan, PicturePreprocessor } from './preprocess/picture-preprocessor.js';

export interface PicturePoolOptions {
  /** Limits other than PICTURE_LIMITS. */
  limits?: Partial<PictureLimits> | undefined;
  /** Bytes that pictures take while they are prepared; a server's models share one. Default: one of its own with 512 MiB. */
  memory?: ByteBudget;
  /** Most processes. Default 1. */
  workers?: number | undefined;
  /** Processes that other pools use too, and that do not end with this one. Default: its own. */
  helpers?: PictureHelpers;
}

export type PictureHelpers = HelperPool<PictureJob, PreparedPicture>;

/** The processes of a pool, or of several. */
export function pictureHelpers({
  limits,
  workers,
}: Pick<PicturePoolOptions, 'limits' | 'workers'>): PictureHelpers {
  return new HelperPool({
    script: new URL('./picture-worker.js', import.meta.url),
    processes: true,
    workers,
    timeLimitMs: { ...PICTURE_LIMITS, ...limits }.timeLimitMs,
  });
}

const DEFAULT_MEMORY_BYTES = 2 ** 29;

/**
 * Decodes and prepares a model's pictures, in processes of their own: a file that a decoder cannot cope with ends none but them, and the
 * decoder's settings, which hold for a whole process, are no program's that has Skein in it. The first process starts with the first
 * picture. Kinds, sizes and memory are looked at here, before anything is decoded.
 */
export class PicturePool {
  readonly preprocessor: PicturePreprocessor;
  readonly #files: PictureFiles;
  readonly #limits: PictureLimits;
  readonly #memory: ByteBudget;
  readonly #helpers: PictureHelpers;
  readonly #sharesHelpers: boolean;

  /** @throws CheckpointError for an image processor that is not known */
  constructor(files: PictureFiles, { limits, memory, workers, helpers }: PicturePoolOptions = {}) {
    this.preprocessor = picturePreprocessor(files);
    this.#files = files;
    this.#limits = { ...PICTURE_LIMITS, ...limits };
    this.#memory = memory ?? new ByteBudget(DEFAULT_MEMORY_BYTES);
    this.#sharesHelpers = helpers !== undefined;
    this.#helpers = helpers ?? pictureHelpers({ limits, workers });
  }

  /** Processes started so far: more than `workers` where some ended while they had a picture. */
  get processes(): number {
    return this.#helpers.starts;
  }

  /** What a file's picture becomes, by its header. @throws PictureError for a file that is none, or whose picture is too large */
  look(file: Uint8Array): PicturePlan {
    const { width, height } = uprightSize(pictureHeader(file, this.#limits));
    return this.preprocessor.plan(width, height);
  }

  /**
   * Prepares a request's pictures, one after the other.
   * @throws PictureError, PicturesBusyError, PictureDecoderError; the signal's reason where it is aborted
   */
  async prepare(files: readonly Uint8Array[], signal?: AbortSignal): Promise<PreparedPicture[]> {
    checkFiles(files, this.#limits);
    const costs = files.map((bytes) =>
      preparationBytes(bytes, pictureHeader(bytes, this.#limits), this.preprocessor),
    );
    const prepared: PreparedPicture[] = [];
    for (const [i, bytes] of files.entries()) {
      const giveBack = await this.#memory.take(costs[i]!, signal);
      // A picture whose caller no longer waits takes its memory until it is done.
      const picture = this.#prepareOne(bytes).finally(giveBack);
      prepared.push(await (signal === undefined ? picture : unlessAborted(picture, signal)));
    }
    return prepared;
  }

  /** Fails all pictures that wait or are prepared, and ends the processes, unless they are others' too. */
  async close(): Promise<void> {
    if (!this.#sharesHelpers) await this.#helpers.close();
  }

  async #prepareOne(bytes: Uint8Array): Promise<PreparedPicture> {
    const job = { bytes, files: this.#files, limits: this.#limits };
    try {
      return await this.#helpers.run(job).catch((error) => {
        // The process may have ended for another reason than this file, which is tried once more: alone in a new one.
        if (error instanceof HelperLostError && !(error instanceof HelperClosedError))
          return this.#helpers.run(job);
        throw error;
      });
    } catch (error) {
      throw inPicturesWords(error, this.#limits);
    }
  }
}

/** The promise, or the signal's reason as soon as it is aborted. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const forget = onAbort(signal, () => reject(signal.reason));
    promise.then(resolve, reject).finally(forget);
  });
}

function inPicturesWords(error: unknown, { timeLimitMs }: PictureLimits): unknown {
  if (error instanceof HelperBusyError)
    return new PicturesBusyError('Too many pictures are waiting; try again later.');
  if (error instanceof HelperTimeError)
    return new PictureError(`The picture took more than ${timeLimitMs / 1000} s to decode and prepare.`);
  if (error instanceof HelperLostError)
    return new PictureDecoderError(`The picture was not decoded: ${error.message}`, { cause: error });
  if (!(error instanceof HelperError)) return error;
  if (error.failure.code === 'SKEIN_PICTURE') return new PictureError(error.failure.text);
  return new PictureDecoderError(error.failure.text, { cause: error });
}
