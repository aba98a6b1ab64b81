import type { createRequire } from 'node:module';
import { PictureDecoderError } from './picture-error.js';

/** The package that decodes pictures, with the versions that are tested. */
export const SHARP_PACKAGE = { sharp: '^0.35.5' } as const;

const MISSING =
  'Pictures are decoded by a package that is not here: "npm install sharp" in the folder of your program installs it.';

/** What is called of sharp. */
export interface Sharp {
  (bytes: Uint8Array, options: SharpOptions): SharpPicture;
  cache(options: boolean): unknown;
  concurrency(threads: number): unknown;
  block(options: { operation: string[] }): void;
  unblock(options: { operation: string[] }): void;
}

interface SharpOptions {
  failOn: 'error';
  ignoreIcc: boolean;
  limitInputPixels: number;
  sequentialRead: boolean;
}

export interface SharpPicture {
  /** Mirrors it left and right. */
  flop(): SharpPicture;
  /** Mirrors it up and down. */
  flip(): SharpPicture;
  /** Turns it clockwise, after any mirroring. */
  rotate(degrees: 90 | 180 | 270): SharpPicture;
  pipelineColourspace(space: string): SharpPicture;
  toColourspace(space: string): SharpPicture;
  timeout(options: { seconds: number }): SharpPicture;
  raw(options?: { depth: 'ushort' }): SharpPicture;
  metadata(): Promise<{ space?: string; channels: number; width: number; height: number }>;
  toBuffer(options: { resolveWithObject: true }): Promise<{
    data: Buffer;
    info: { width: number; height: number; channels: number };
  }>;
}

/** libvips' readers of the files that it is given: none opens a file, and those of other kinds are blocked. */
const READERS = ['VipsForeignLoadJpegBuffer', 'VipsForeignLoadPngBuffer', 'VipsForeignLoadWebpBuffer'];

/**
 * Loads sharp and takes from libvips what is not needed: its cache, threads, and readers of other kinds of files. These settings hold for
 * a whole process, which therefore should do nothing else.
 * @throws PictureDecoderError where the package is missing, or does not load
 */
export function loadSharp(require: ReturnType<typeof createRequire> | null): Sharp {
  if (require === null) throw new PictureDecoderError(MISSING);
  let sharp: Sharp;
  try {
    sharp = require('sharp') as Sharp;
  } catch (error) {
    throw new PictureDecoderError(
      'The package that decodes pictures does not load: "npm install sharp" in the folder of your program installs the one for this machine.',
      { cause: error },
    );
  }
  sharp.cache(false);
  sharp.concurrency(1);
  sharp.block({ operation: ['VipsForeignLoad'] });
  sharp.unblock({ operation: READERS });
  return sharp;
}
