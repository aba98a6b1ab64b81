import { promisify } from 'node:util';
import { deflate, gzip } from 'node:zlib';

const COMPRESSORS = { gzip: promisify(gzip), deflate: promisify(deflate) } as const;
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

export function compressed(bytes: Uint8Array, coding: Coding): Promise<Buffer<ArrayBuffer>> {
  return COMPRESSORS[coding](bytes) as Promise<Buffer<ArrayBuffer>>;
}
