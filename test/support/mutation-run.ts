import { crc32, deflateSync, inflateSync } from 'node:zlib';
import type { PicturePool } from '../../models/images/picture-pool.js';
import { pngChunk } from './hostile-pictures.js';
import { pictureGoldens } from './picture-goldens.js';

/** Results of mutated files, by what became of them. */
export interface MutationRun {
  pictures: number;
  refused: number;
  /** Whatever is neither a picture nor one sentence, with the file that led to it. */
  wrong: string[];
}

/** Gives mutated files of a kind to a pool, one after the other. */
export async function runMutations(
  pool: Pick<PicturePool, 'prepare' | 'preprocessor'>,
  kind: string,
  count: number,
): Promise<MutationRun> {
  const draw = drawsFrom(Number(process.env.SKEIN_TEST_SEED ?? 1) + kind.length * 7919 + kind.charCodeAt(0));
  const files = filesOf(kind);
  const run: MutationRun = { pictures: 0, refused: 0, wrong: [] };
  for (let i = 0; i < count; i++) {
    const file = mutated(files, draw);
    try {
      const [picture] = await pool.prepare([file]);
      const { width, height, tiles } = picture!;
      const plan = pool.preprocessor.plan(width, height);
      if (tiles.length === plan.tiles.length) run.pictures++;
      else run.wrong.push(`${tiles.length} tiles: ${file.toString('base64')}`);
    } catch (error) {
      const { name, message } = error as Error;
      if (name === 'PictureError' && /^The [^\n]+\.$/.test(message)) run.refused++;
      else run.wrong.push(`${name}: ${message}: ${file.toString('base64')}`);
    }
  }
  return run;
}

/** Numbers below a limit that are the same every time (xorshift). */
function drawsFrom(seed: number): (limit: number) => number {
  let state = seed | 1;
  return (limit) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % limit;
  };
}

/** Golden files of a kind: their names begin with it. */
function filesOf(kind: string): Buffer[] {
  return pictureGoldens()
    .files.filter(({ name }) => name.startsWith(kind))
    .map(({ file }) => Buffer.from(file, 'base64'));
}

/**
 * A file with changed, cut, doubled or inserted bytes. A PNG has them in its packed rows, or with checksums that fit, every other time.
 */
function mutated(files: readonly Buffer[], draw: (limit: number) => number): Buffer {
  const file = files[draw(files.length)]!;
  if (isPng(file) && draw(2) === 0) return withRows(file, (rows) => changed(rows, draw));
  const result = changed(file, draw);
  if (isPng(result) && draw(2) === 0) mendChecksums(result);
  return result;
}

function changed(original: Buffer, draw: (limit: number) => number): Buffer {
  let file = Buffer.from(original);
  for (let change = 0; change <= draw(6); change++) {
    const at = draw(file.length);
    const kind = draw(10);
    if (kind < 6) file[at] = draw(256);
    else if (kind === 6) file[at] = [0, 255, 127, 128][draw(4)]!;
    else if (kind === 7) file = file.subarray(0, Math.max(12, at));
    else {
      const part =
        kind === 8 ? file.subarray(at, at + 1 + draw(40)) : Buffer.from([draw(256), draw(256), draw(256)]);
      file = Buffer.concat([file.subarray(0, at), part, file.subarray(at)]);
    }
  }
  return file;
}

const isPng = (file: Buffer) => file[0] === 0x89;

/** A PNG with other rows, packed again. */
function withRows(file: Buffer, change: (rows: Buffer) => Buffer): Buffer {
  const parts = [file.subarray(0, 8)];
  const packed: Buffer[] = [];
  for (let at = 8; at < file.length; at += 12 + file.readUInt32BE(at)) {
    const chunk = file.subarray(at, at + 12 + file.readUInt32BE(at));
    if (chunk.toString('latin1', 4, 8) === 'IDAT') packed.push(chunk.subarray(8, -4));
    else parts.push(chunk);
  }
  const rows = pngChunk('IDAT', deflateSync(change(inflateSync(Buffer.concat(packed)))));
  return Buffer.concat([...parts.slice(0, -1), rows, parts.at(-1)!]);
}

/** Writes the checksums of a PNG's chunks, as far as these can be followed. */
function mendChecksums(file: Buffer): void {
  for (let at = 8; at + 12 <= file.length; ) {
    const end = at + 8 + file.readUInt32BE(at);
    if (end + 4 > file.length) return;
    file.writeUInt32BE(crc32(file.subarray(at + 4, end)), end);
    at = end + 4;
  }
}
