import type { ConvertJob } from '../../../directory/convert-job.js';
import { storedBytes } from '../../../directory/weight-blocks.js';
import { checkFields, checkSource } from './check-job.js';
import { ConvertedRows } from './converted-rows.js';
import { PositionedFile } from './positioned-file.js';
import type { StorageType } from './tensor-types.js';

/**
 * The rows of a tensor that lies in a model's file: those of each job, one after the other, with the bytes
 * that weights.bin would have. The jobs have one number of columns and one target type; what they say of the
 * target's place does not count.
 */
export class SourceRows {
  readonly rows: number;
  readonly rowBytes: number;
  readonly #jobs: readonly { job: ConvertJob; type: StorageType; first: number }[];
  readonly #file: PositionedFile;
  readonly #converted = new ConvertedRows();
  #joined = new Uint8Array(0);

  /** Opens the file. Throws one sentence if it cannot be read, or does not hold the rows. */
  constructor(jobs: readonly ConvertJob[]) {
    const [{ source, columns, targetType }] = jobs as [ConvertJob];
    this.#file = PositionedFile.forReading(source);
    this.rowBytes = storedBytes(targetType, 1, columns);
    let rows = 0;
    try {
      this.#jobs = jobs.map((job) => {
        const type = checkFields(job);
        checkSource(job, type, this.#file);
        const first = rows;
        rows += job.rows;
        return { job, type, first };
      });
    } catch (error) {
      this.close();
      throw error;
    }
    this.rows = rows;
  }

  /** Rows `first` to `first + count`: a view at a multiple of 4 bytes of its buffer, valid until the next call. */
  read(first: number, count: number): Uint8Array {
    for (const { job, type, first: before } of this.#jobs) {
      const begin = first - before;
      if (begin >= 0 && begin + count <= job.rows)
        return this.#converted.of(job, type, this.#file, begin, count);
    }
    if (this.#joined.length < count * this.rowBytes) this.#joined = new Uint8Array(count * this.rowBytes);
    for (const { job, type, first: before } of this.#jobs) {
      const begin = Math.max(first, before);
      const end = Math.min(first + count, before + job.rows);
      if (begin >= end) continue;
      const rows = this.#converted.of(job, type, this.#file, begin - before, end - begin);
      this.#joined.set(rows, (begin - first) * this.rowBytes);
    }
    return this.#joined.subarray(0, count * this.rowBytes);
  }

  close(): void {
    this.#file.close();
  }
}
