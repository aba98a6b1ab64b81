import sharp from 'sharp';
import { PICTURE_LIMITS } from '../../models/images/picture-limits.js';
import type { DearRequest } from './measure.js';

/** A file, with its colour by a number, so that no two are the same picture. */
type Draw = (colour: number) => Promise<Buffer>;

/** 4000 x 4000: the most pixels that a picture may have. */
const SIDE = Math.sqrt(PICTURE_LIMITS.maxPixels);

const plain = (width: number, height: number, colour: number) =>
  sharp({
    create: { width, height, channels: 3, background: { r: colour % 256, g: (7 * colour) % 256, b: 90 } },
  });

/** Bytes that no file makes smaller. */
function noise(length: number, seed: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let i = 0, state = 2 * seed + 1; i < length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[i] = state;
  }
  return bytes;
}

function ofNoise(side: number, seed: number) {
  const raw = { width: side, height: side, channels: 3 } as const;
  return sharp(noise(3 * side * side, seed), { raw });
}

/**
 * The most expensive valid pictures, by name: of each kind the most pixels, the longest file, the most
 * pictures, the most tokens.
 */
const DRAWS: readonly (readonly [name: string, count: number, draw: Draw])[] = [
  ['a PNG of the most pixels', 1, (colour) => plain(SIDE, SIDE, colour).png().toBuffer()],
  [
    'a PNG of 16 bits with alpha, interlaced, of the most pixels',
    1,
    (colour) =>
      plain(SIDE, SIDE, colour).ensureAlpha(0.5).toColourspace('rgb16').png({ progressive: true }).toBuffer(),
  ],
  ['a PNG of 12 MB', 1, (colour) => ofNoise(1930, colour).png({ compressionLevel: 1 }).toBuffer()],
  [
    'a progressive JPEG of the most pixels',
    1,
    (colour) => plain(SIDE, SIDE, colour).jpeg({ progressive: true, optimizeScans: true }).toBuffer(),
  ],
  ['a WebP of the most pixels', 1, (colour) => plain(SIDE, SIDE, colour).webp({ lossless: true }).toBuffer()],
  ['a GIF of the most pixels', 1, (colour) => plain(SIDE, SIDE, colour).gif().toBuffer()],
  ['a PNG of the longest side', 1, (colour) => plain(PICTURE_LIMITS.maxSide, 976, colour).png().toBuffer()],
  ['the most pictures', PICTURE_LIMITS.maxPictures, (colour) => plain(900, 900, colour).png().toBuffer()],
];

/** A picture with which a model has the most tokens that its tower takes. */
const MAX_TOKENS: Draw = (colour) => plain(2000, 1100, colour).png().toBuffer();

/** A request with pictures, whose number makes them other ones. */
export type DearPictures = readonly [name: string, request: (number: number) => Promise<DearRequest>];

/**
 * The most expensive requests with pictures. Their memory is that of the models' pictures.
 * @param few model whose pictures have few tokens, so that it answers soon @param many model whose pictures have as many as there may be
 */
export function dearPictures(few: string, many: string): DearPictures[] {
  const asked = [
    ...DRAWS.map((draw) => [few, ...draw] as const),
    [many, 'the most tokens', 1, MAX_TOKENS] as const,
  ];
  return asked.map(([model, name, count, draw]) => [
    name,
    async (number) => {
      const colours = Array.from({ length: count }, (_, i) => 1 + count * number + i);
      const body = chatWith(model, await Promise.all(colours.map(draw)));
      return { name, path: CHAT, body, isLong: false, hasOwnMemory: true };
    },
  ]);
}

/** Bodies for a crowd, each with one of the largest pictures that are allowed, by pixels or by bytes. */
export async function crowdOf(model: string, count: number, largest: 'pixels' | 'bytes'): Promise<Buffer[]> {
  const files =
    largest === 'pixels'
      ? await Promise.all(
          Array.from({ length: count }, (_, i) =>
            plain(SIDE, SIDE, 40 + i)
              .png()
              .toBuffer(),
          ),
        )
      : Array<Buffer>(count).fill(await ofNoise(1930, 99).png({ compressionLevel: 1 }).toBuffer());
  return files.map((file) => chatWith(model, [file]));
}

export const CHAT = '/v1/chat/completions';

function chatWith(model: string, files: readonly Buffer[]): Buffer {
  const parts = files.map((file) => ({
    type: 'image_url',
    image_url: { url: `data:image/png;base64,${file.toString('base64')}` },
  }));
  const messages = [{ role: 'user', content: [...parts, { type: 'text', text: 'what is there?' }] }];
  return Buffer.from(JSON.stringify({ model, messages, max_tokens: 8, ignore_eos: true }));
}
