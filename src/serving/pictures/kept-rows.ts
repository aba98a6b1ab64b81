/** Bytes of rows of pictures that a model keeps. */
export const MAX_KEPT_BYTES = 2 ** 28;

/** Bytes of patches that a model's pictures may have at a time while its tower sees them. */
export const PATCH_BYTES = 2 ** 27;

interface Kept {
  rows: Promise<Float32Array>;
  /** Bytes of the rows; 0 as long as they are made. */
  bytes: number;
}

/**
 * Rows of pictures by what they are made of, within a bound of bytes: those that were used last stay. Rows that are being made are there
 * too, so that a picture that two requests bring at a time is seen once.
 */
export class KeptRows {
  readonly #maxBytes: number;
  /** Those used last come last. */
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;
  readonly #counts = { made: 0, kept: 0 };

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes of all rows that are kept. */
  get bytes(): number {
    return this.#bytes;
  }

  /** How often rows were made, and how often they were there, or on their way, when they were asked for. */
  get counts(): Readonly<{ made: number; kept: number }> {
    return this.#counts;
  }

  /** The rows under the key, made if there are none. What could not be made is not kept. */
  of(key: string, make: () => Promise<Float32Array>): Promise<Float32Array> {
    const known = this.#kept.get(key);
    if (known !== undefined) {
      this.#counts.kept++;
      this.#kept.delete(key);
      this.#kept.set(key, known);
      return known.rows;
    }
    const made: Kept = { rows: make(), bytes: 0 };
    this.#kept.set(key, made);
    made.rows.then(
      ({ byteLength }) => this.#keep(key, made, byteLength),
      () => this.#forget(key, made),
    );
    return made.rows;
  }

  #keep(key: string, made: Kept, bytes: number): void {
    this.#counts.made++;
    if (this.#kept.get(key) !== made) return;
    made.bytes = bytes;
    this.#bytes += bytes;
    for (const [oldest, one] of this.#kept) {
      if (this.#bytes <= this.#maxBytes) return;
      if (one.bytes > 0) this.#forget(oldest, one);
    }
  }

  #forget(key: string, one: Kept): void {
    if (this.#kept.get(key) !== one) return;
    this.#kept.delete(key);
    this.#bytes -= one.bytes;
  }
}
