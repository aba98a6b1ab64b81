import { Readable } from 'node:stream';
import { createDeflate, createGzip } from 'node:zlib';

const COMPRESSORS = { gzip: createGzip, deflate: createDeflate } as const;
type Coding = keyof typeof COMPRESSORS;

/** The compression that a client likes best of those that this server has; null: none. The first of equals is taken, as Triton does. */
export function codingFor(acceptEncoding: string | undefined): Coding | null {
  if (acceptEncoding === undefined) return null;
  let best: Coding | null = null;
  let most = 0;
  for (const part of acceptEncoding.split(',')) {
    const [name = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
    const weight = parameters.find((text) => text.startsWith('q='))?.slice(2) ?? '1';
    const likes = Number(weight);
    if ((name !== 'gzip' && name !== 'deflate') || !(likes > most)) continue;
    best = name;
    most = likes;
  }
  return best;
}

/** Parts that follow each other, compressed in the library's threads as the client reads them. */
export function compressed(parts: readonly Uint8Array[], coding: Coding): Readable {
  return Readable.from(parts, { objectMode: false }).pipe(COMPRESSORS[coding]());
}
