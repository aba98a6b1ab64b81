import { GrpcError } from '../wire/status.js';

/** A place in a message, and the number that was read last: whole numbers have 64 bits, so they come as two halves. */
export class VarintCursor {
  readonly #bytes: Uint8Array;
  at = 0;
  low = 0;
  high = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /**
   * Reads a number of seven bits a byte, the lowest first, of which all bytes but the last have the highest bit.
   * Source: Protocol Buffers, "Encoding". @throws GrpcError where the bytes end before the number does
   */
  read(): void {
    const bytes = this.#bytes;
    const first = bytes[this.at]!;
    if (first < 0x80) {
      this.low = first;
      this.high = 0;
      this.at++;
      return;
    }
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = bytes[this.at++];
      if (byte === undefined) throw unreadable('it ends too early');
      const bits = byte & 0x7f;
      if (shift < 28) low |= bits << shift;
      else if (shift === 28) {
        low |= bits << 28;
        high = bits >> 4;
      } else high |= bits << (shift - 32);
      if (byte < 0x80) {
        this.low = low >>> 0;
        this.high = high >>> 0;
        return;
      }
    }
    throw unreadable('a number has more than ten bytes');
  }
}

/** The words of Triton, and what is wrong. */
export function unreadable(why: string): GrpcError {
  return new GrpcError('INTERNAL', `Unable to parse request: ${why}`);
}
