import { createHash } from 'node:crypto';
import fs, { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { download } from '../../../src/hub/download.js';
import { freshFolders } from '../../support/fresh-folders.js';

const makeFolder = freshFolders('skein-download');
const CONTENT = Buffer.from('what a file has in it');
const FIRST = 9;

afterEach(() => void vi.restoreAllMocks());

/** A body whose connection ends when its first bytes are about to be written. */
function cutInTheFirstWrite(): ReadableStream {
  const { write } = fs;
  let cut = () => {};
  vi.spyOn(fs, 'write').mockImplementationOnce(((...args: unknown[]) => {
    cut();
    setTimeout(() => Reflect.apply(write, fs, args), 20);
  }) as unknown as typeof write);
  return new ReadableStream({
    start(controller) {
      controller.enqueue(CONTENT.subarray(0, FIRST));
      cut = () => controller.error(new Error('other side closed'));
    },
  });
}

it('goes on after bytes whose write was still under way when the connection ended', async () => {
  const target = join(makeFolder(), 'file');
  const ranges: (string | null)[] = [];
  const sum = createHash('sha256').update(CONTENT).digest('hex');
  const source = { name: 'org/name/file', url: 'http://hub/file', size: CONTENT.length, headers: {} };
  await download({ ...source, checksum: { algorithm: 'sha256', value: sum } }, target, {
    fetch: async (_url, init) => {
      const range = new Headers(init?.headers).get('range');
      ranges.push(range);
      if (ranges.length === 1) return new Response(cutInTheFirstWrite());
      const start = Number(/\d+/.exec(range ?? '0')![0]);
      return new Response(CONTENT.subarray(start), { status: start > 0 ? 206 : 200 });
    },
    onBytes: () => {},
    retryDelayMs: 1,
  });
  expect(ranges).toEqual([null, `bytes=${FIRST}-`]);
  expect(readFileSync(target)).toEqual(CONTENT);
});
