import { CheckpointError } from './checkpoint.js';
import type { GgufMetadata } from './gguf-metadata.js';

/** Values of a GGUF file by the keys of its architecture, such as llama.block_count. */
export class GgufKeys {
  readonly #metadata: GgufMetadata;
  readonly #architecture: string;

  constructor(metadata: GgufMetadata, architecture: string) {
    this.#metadata = metadata;
    this.#architecture = architecture;
  }

  /** Whether tokens attend also to what follows them, which llama.cpp knows of some architectures without a key. */
  get bothWays(): boolean {
    return !(this.boolean('attention.causal') ?? this.#architecture !== 'gemma-embedding');
  }

  /** The file's name of the architecture. */
  get architecture(): string {
    return this.#architecture;
  }

  get file(): string {
    return this.#metadata.file;
  }

  number(key: string): number | undefined {
    return this.#metadata.number(`${this.#architecture}.${key}`);
  }

  boolean(key: string): boolean | undefined {
    return this.#metadata.boolean(`${this.#architecture}.${key}`);
  }

  string(key: string): string | undefined {
    return this.#metadata.string(`${this.#architecture}.${key}`);
  }

  /** A list of numbers or booleans; undefined where there is none, or a number in its place. */
  list(key: string): ArrayLike<number | boolean> | undefined {
    return this.#metadata.list(`${this.#architecture}.${key}`);
  }

  integer(key: string, least: number, most: number, fallback?: number): number {
    const value = this.number(key) ?? fallback;
    if (value === undefined || !Number.isInteger(value) || value < least || value > most) {
      throw this.error(key, `a whole number from ${least} to ${most}`, value);
    }
    return value;
  }

  /** As `integer`; a file may say it for each layer, where it has to be one number. */
  ofAllLayers(key: string, numLayers: number, least: number, most: number, fallback?: number): number {
    const list = this.list(key);
    if (list === undefined) return this.integer(key, least, most, fallback);
    const [first] = Array.from(list);
    const isOne = Number.isInteger(first) && (first as number) >= least && (first as number) <= most;
    if (isOne && list.length === numLayers && Array.from(list).every((item) => item === first))
      return first as number;
    const expected = `a whole number from ${least} to ${most}, or ${numLayers} times one and the same`;
    throw this.error(key, expected, `a list of ${list.length}: ${Array.from(list).slice(0, 8).join(', ')}`);
  }

  /** A list of whole numbers from 1 to `most`, one for each layer. */
  listOfLayers(key: string, numLayers: number, most: number): ArrayLike<number> {
    const list = this.list(key);
    const isRight = (item: unknown) =>
      Number.isInteger(item) && (item as number) >= 1 && (item as number) <= most;
    if (list?.length === numLayers && Array.from(list).every(isRight)) return list as ArrayLike<number>;
    throw this.error(key, `a list of ${numLayers} whole numbers from 1 to ${most}`, list?.length);
  }

  positive(key: string, fallback?: number): number {
    const value = this.number(key) ?? fallback;
    if (value === undefined || !Number.isFinite(value) || value <= 0) {
      throw this.error(key, 'a number greater than 0', value);
    }
    return value;
  }

  error(key: string, expected: string, found: unknown): CheckpointError {
    const shown = found === undefined ? 'nothing' : String(found).slice(0, 100);
    return new CheckpointError(
      `${this.file}: metadata key ${this.#architecture}.${key} should be ${expected}, found ${shown}.`,
    );
  }
}
