/** Kinds of frames between ranks. */
export const FRAMES = {
  hello: 1,
  welcome: 2,
  refusal: 3,
  call: 4,
  publication: 5,
  answer: 6,
  abort: 7,
  goodbye: 8,
  /** From one host to another, after all that was sent before. */
  message: 9,
  /** That the connection is alive, for those who watch it. */
  beat: 10,
} as const;

/**
 * A frame: four numbers, whose meaning its kind gives, and bytes.
 *
 *   length of the rest | kind | a | b | c | bytes          numbers: 4 bytes, little endian
 */
export interface Frame {
  kind: number;
  numbers: readonly [number, number, number];
  bytes: Uint8Array;
}

const LENGTH_BYTES = 4;
const NUMBERS_BYTES = 16;
/** Bytes of the longest frame: a call fills the memory for it. */
const MAX_FRAME_BYTES = NUMBERS_BYTES + 4 * 2 ** 20;

export function encodeFrame({ kind, numbers, bytes }: Frame): Buffer {
  const frame = Buffer.allocUnsafe(LENGTH_BYTES + NUMBERS_BYTES + bytes.length);
  frame.writeUInt32LE(NUMBERS_BYTES + bytes.length, 0);
  for (const [i, number] of [kind, ...numbers].entries())
    frame.writeUInt32LE(number >>> 0, LENGTH_BYTES + 4 * i);
  frame.set(bytes, LENGTH_BYTES + NUMBERS_BYTES);
  return frame;
}

export function textFrame(kind: number, text: string): Frame {
  return { kind, numbers: [0, 0, 0], bytes: Buffer.from(text) };
}

/** Cuts a stream of bytes into frames. */
export class FrameReader {
  readonly #onFrame: (frame: Frame) => void;
  #chunks: Buffer[] = [];
  #length = 0;

  constructor(onFrame: (frame: Frame) => void) {
    this.#onFrame = onFrame;
  }

  /** Takes the next bytes. @throws Error if they are no frames */
  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    while (this.#length >= LENGTH_BYTES) {
      const wanted = LENGTH_BYTES + this.#front(LENGTH_BYTES).readUInt32LE(0);
      if (wanted < LENGTH_BYTES + NUMBERS_BYTES || wanted > LENGTH_BYTES + MAX_FRAME_BYTES) {
        throw new Error(`A rank sent a frame of ${wanted} bytes.`);
      }
      if (this.#length < wanted) return;
      const frame = this.#front(wanted);
      this.#chunks[0] = this.#chunks[0]!.subarray(wanted);
      this.#length -= wanted;
      const at = (index: number) => frame.readUInt32LE(LENGTH_BYTES + 4 * index);
      this.#onFrame({
        kind: at(0),
        numbers: [at(1), at(2), at(3)],
        bytes: frame.subarray(LENGTH_BYTES + NUMBERS_BYTES, wanted),
      });
    }
  }

  /** A buffer that begins with `bytes` bytes of the stream. */
  #front(bytes: number): Buffer {
    if (this.#chunks[0]!.length < bytes) this.#chunks = [Buffer.concat(this.#chunks, this.#length)];
    return this.#chunks[0]!;
  }
}
