import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { blockFileName, parseName, stateKey } from '../../../engine/disk-cache/block-file.js';
import { BlockFolder, type FolderOptions } from '../../../engine/disk-cache/block-folder.js';
import { FolderIndex } from '../../../engine/disk-cache/folder-index.js';
import { freshFolders } from '../../support/fresh-folders.js';

const folder = freshFolders('skein-block-folder');
const IDENTITY = '0123456789abcdef'.repeat(4);
/** Bytes of a file of one block of four tokens: see blockPrefix. */
const FILE = 80 + 16 + 32 + 4;

function open(path: string, more: Partial<FolderOptions> = {}) {
  const problems: string[] = [];
  const format = { identity: IDENTITY, bytesPerBlock: 32, bytesPerState: 48 };
  const onProblem = (message: string) => problems.push(message);
  const store = new BlockFolder({ ...format, path, maxBytes: 1e6, onProblem, ...more });
  return { store, problems, keys: store.open().sort((a, b) => a - b) };
}

const chain = (key: number, of = key) => ({ key, salt: 5n, tokens: Int32Array.of(of, 2, 3, 4) });
const content = (value: number, bytes = 32) => new Uint8Array(bytes).fill(value);
const read = (store: BlockFolder, key: number, of = key, bytes = 32) => {
  const target = new Uint8Array(bytes);
  return store.read(chain(key, of), key, target) === 'whole' ? target : null;
};

describe('a folder of blocks', () => {
  it('gives back what was written, in this process and the next', () => {
    const path = folder();
    const { store } = open(path);
    expect(store.write(chain(7), content(1))).toBe(true);
    expect(store.write(chain(stateKey(7), 7), content(2, 48))).toBe(true);
    expect(read(store, 7)).toEqual(content(1));
    const { store: next, keys, problems } = open(path);
    expect(keys).toEqual([stateKey(7), 7]);
    expect(read(next, 7)).toEqual(content(1));
    expect(read(next, stateKey(7), 7, 48)).toEqual(content(2, 48));
    expect(next.usage).toEqual({ files: 2, bytes: 2 * FILE + 16, damaged: 0, errors: 0 });
    expect(problems).toEqual([]);
  });

  it('compares salt, adapter, tokens, kind and engine, beside the name', () => {
    const path = folder();
    const { store } = open(path);
    store.write(chain(7), content(1));
    const others = [
      { ...chain(7), salt: 6n },
      { ...chain(7), loraId: 0n },
      { ...chain(7), tokens: Int32Array.of(8, 2, 3, 4) },
      { ...chain(7), tokens: Int32Array.of(7, 2, 3, -4) },
    ];
    for (const other of others) expect(store.read(other, 7, content(0))).toBe('other');
    const similar = open(path, { identity: `${IDENTITY.slice(0, 16)}${'9'.repeat(48)}` });
    expect(read(similar.store, 7)).toBeNull();
    fs.renameSync(
      join(path, blockFileName({ identity: IDENTITY }, 7)),
      join(path, blockFileName({ identity: IDENTITY }, stateKey(7))),
    );
    const renamed = open(path, { bytesPerState: 32 });
    expect(read(renamed.store, stateKey(7), 7)).toBeNull();
    for (const { usage } of [store, similar.store, renamed.store]) expect(usage.damaged).toBe(0);
  });

  it('takes no changed file, whatever was changed, cut or added', () => {
    let seed = 7;
    const draw = (below: number) => {
      seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
      return (seed >>> 8) % below;
    };
    const path = folder();
    const file = join(path, blockFileName({ identity: IDENTITY }, 7));
    for (let round = 0; round < 400; round++) {
      const { store } = open(path);
      store.write(chain(7), content(1));
      const bytes = fs.readFileSync(file);
      const kind = round % 4;
      const at = draw(bytes.length);
      const changed =
        kind === 0
          ? bytes.map((byte, i) => (i === at ? byte ^ (1 + draw(255)) : byte))
          : kind === 1
            ? bytes.subarray(0, at)
            : kind === 2
              ? Buffer.concat([bytes, Buffer.alloc(1 + draw(100), draw(256))])
              : Buffer.from(Array.from({ length: draw(2 * bytes.length) }, () => draw(256)));
      fs.writeFileSync(file, changed);
      expect([round, read(store, 7)]).toEqual([round, null]);
      expect(store.usage.damaged).toBe(1);
      expect(fs.existsSync(file)).toBe(false);
    }
  });

  it('removes the longest unused files beyond its limits, whoever wrote them, and no others', () => {
    const path = folder();
    let nowMs = 1e12;
    const clock = () => nowMs;
    const maxBytes = 10 * FILE;
    fs.writeFileSync(join(path, 'notes.txt'), 'x'.repeat(10_000));
    const other = open(path, { identity: 'f'.repeat(64), clock, maxBytes });
    other.store.write(chain(1), content(1));
    const { store } = open(path, { clock, maxBytes });
    for (let key = 1; key <= 9; key++) {
      nowMs += 1000;
      store.write(chain(key), content(key));
    }
    nowMs += 1000;
    expect(store.takeGone()).toEqual([]);
    store.touch([1]);
    nowMs += 1000;
    store.write(chain(10), content(10));
    expect(store.takeGone()).toEqual([2]);
    const names = fs.readdirSync(path);
    expect(names).toContain('notes.txt');
    expect(names.filter((name) => name.startsWith('f'))).toEqual([]);
    expect(store.usage).toMatchObject({ files: 9, bytes: 9 * FILE });
    expect(read(store, 2)).toBeNull();
    // A block larger than the folder may be is not written at all.
    expect(open(folder(), { maxBytes: FILE - 1 }).store.write(chain(1), content(1))).toBe(false);
  });

  it('keeps to a number of files', () => {
    // All at one time: nothing is older than another file.
    const nowMs = Date.now();
    const { store } = open(folder(), { maxFiles: 4, clock: () => nowMs });
    const write = (key: number) =>
      store.write({ ...chain(key), tokens: new Int32Array(4 * key) }, content(key));
    // A later block of a chain does not push out what it needs.
    expect([1, 2, 3, 4, 5].map(write)).toEqual([true, true, true, true, false]);
    expect([store.takeGone(), store.usage.files]).toEqual([[], 4]);
    // The last ones of a chain go first.
    expect(store.write({ ...chain(9), tokens: new Int32Array(2) }, content(9))).toBe(true);
    expect(store.takeGone()).toEqual([4, 3]);
    expect(store.usage.files).toBe(3);
  });

  it('never has more bytes than its limit, while a file is written, and beside one that a killed process left', () => {
    const path = folder();
    const left = `${blockFileName({ identity: IDENTITY }, 99)}.1-killed.part`;
    fs.writeFileSync(join(path, left), new Uint8Array(FILE));
    const sizes: number[] = [];
    const measure = () =>
      sizes.push(fs.readdirSync(path).reduce((sum, name) => sum + fs.statSync(join(path, name)).size, 0));
    const writevSync = (...args: Parameters<typeof fs.writevSync>) => {
      const numBytes = fs.writevSync(...args);
      measure();
      return numBytes;
    };
    let nowMs = Date.now() + 1000;
    const maxBytes = 2 * FILE + 10;
    const { store } = open(path, { maxBytes, files: { ...fs, writevSync }, clock: () => nowMs });
    expect(store.usage.bytes).toBe(FILE);
    for (let key = 1; key <= 5; key++) {
      nowMs += 1000;
      expect(store.write(chain(key), content(key))).toBe(true);
      measure();
    }
    expect(Math.max(...sizes)).toBe(2 * FILE);
    expect(fs.readdirSync(path)).not.toContain(left);
  });

  it('is made once more when it was removed, and says so; the folders above it are not', () => {
    const above = folder();
    const path = join(above, 'kv');
    const { store, problems } = open(path);
    store.write(chain(1), content(1));
    store.write(chain(2), content(2));
    fs.rmSync(path, { recursive: true });
    expect(store.read(chain(1), 1, content(0))).toBe('gone');
    expect([store.takeGone(), store.usage.files]).toEqual([[1, 2], 0]);
    expect(store.write(chain(1), content(1))).toBe(true);
    expect(read(store, 1)).toEqual(content(1));
    expect(fs.statSync(path).mode & 0o777).toBe(0o700);
    fs.rmSync(path, { recursive: true });
    expect(store.write(chain(3), content(3))).toBe(true);
    expect([store.takeGone(), read(store, 3)]).toEqual([[1], content(3)]);
    expect(problems).toEqual([`The KV cache's folder ${path} was removed, and is made once more.`]);
    fs.rmSync(above, { recursive: true });
    expect(store.write(chain(4), content(4))).toBe(false);
    expect(fs.existsSync(above)).toBe(false);
    expect(problems).toHaveLength(2);
  });

  it('that cannot be made is told of in one sentence, and left alone', () => {
    const file = join(folder(), 'file');
    fs.writeFileSync(file, '');
    for (const [path, why] of [
      ['/proc/nope/below', /cannot be made: ENOENT: .*'\/proc\/nope'\. The engine goes on without\.$/],
      [file, /cannot be made: it is no folder/],
      [join(file, 'below'), /cannot be made: ENOTDIR/],
      [`/proc${'/x'.repeat(65)}`, /cannot be made: 64 folders above it are not there/],
    ] as const) {
      const { store, problems, keys } = open(path);
      expect([keys, store.write(chain(1), content(1))]).toEqual([[], false]);
      expect(problems).toEqual([expect.stringMatching(why)]);
    }
  });

  it('sees after a while what others have written and removed', () => {
    const path = folder();
    const maxBytes = 32 * FILE;
    const one = open(path, { maxBytes }).store;
    const other = open(path, { maxBytes }).store;
    one.write(chain(1), content(1));
    other.write(chain(2), content(2));
    expect(read(one, 2)).toEqual(content(2));
    other.erase();
    expect(read(one, 1)).toBeNull();
    expect(one.usage).toMatchObject({ damaged: 0, errors: 0 });
    one.write(chain(1), content(1));
    one.write(chain(3), content(3));
    other.write(chain(4), content(4));
    fs.rmSync(join(path, blockFileName({ identity: IDENTITY }, 3)));
    one.write(chain(5), content(5));
    one.takeGone();
    one.keepToLimits();
    expect(one.takeGone()).toEqual([3]);
    expect(one.usage.files).toBe(3);
  });

  it('leaves nothing half behind: unfinished files of others go when they are old', () => {
    const path = folder();
    const left = `${blockFileName({ identity: IDENTITY }, 7)}.99-abc.part`;
    fs.writeFileSync(join(path, left), 'half');
    expect(open(path).keys).toEqual([]);
    expect(fs.readdirSync(path)).toEqual([left]);
    fs.utimesSync(join(path, left), 1, 1);
    open(path);
    expect(fs.readdirSync(path)).toEqual([]);
  });

  it('goes on where writes end early, and where nothing can be read or removed', () => {
    const path = folder();
    const bit = (...args: Parameters<typeof fs.writevSync>) =>
      fs.writevSync(args[0], [(args[1][0] as Uint8Array).subarray(0, 7)]);
    const { store } = open(path, { files: { ...fs, writevSync: bit } });
    store.write(chain(7), content(1));
    expect(read(open(path).store, 7)).toEqual(content(1));
    const broken = () => {
      throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' });
    };
    const files = { ...fs, readvSync: broken, unlinkSync: broken } as unknown as typeof fs;
    const failing = open(path, { files });
    expect(read(failing.store, 7)).toBeNull();
    expect(read(failing.store, 7)).toBeNull();
    expect(failing.store.usage).toMatchObject({ damaged: 0 });
    expect(failing.problems).toEqual([expect.stringMatching(/cannot be read: EIO/)]);
  });
});

it('an index counts what it holds', () => {
  const index = new FolderIndex({ maxBytes: 100, maxFiles: 10 });
  index.add('a', { bytes: 60, usedMs: 1 });
  index.add('b', { bytes: 40, usedMs: 2 });
  expect([index.bytes, index.numFiles, index.overflow()]).toEqual([100, 2, []]);
  index.add('a', { bytes: 61, usedMs: 3 });
  expect(index.overflow()).toEqual(['b']);
  expect([index.touch('b', 9), index.touch('c', 9), index.overflow()]).toEqual([2, null, ['a']]);
  expect([index.remove('a'), index.remove('a'), index.bytes]).toEqual([true, false, 40]);
  // For another file only older ones go, and none where that is not enough.
  expect(index.overflowWith({ bytes: 60, usedMs: 1 })).toEqual([]);
  expect(index.overflowWith({ bytes: 61, usedMs: 9 })).toBeNull();
  expect(index.overflowWith({ bytes: 61, usedMs: 10 })).toEqual(['b']);
  expect(index.overflowWith({ bytes: 101, usedMs: 10 })).toBeNull();
});

it('names tell an engine, a chain and a kind, and others are none', () => {
  for (const key of [0, 1, 2 ** 53 - 1, stateKey(0), stateKey(2 ** 53 - 1)]) {
    expect(parseName(blockFileName({ identity: IDENTITY }, key))).toEqual({
      identity: IDENTITY.slice(0, 16),
      key,
    });
  }
  for (const name of ['', 'a.skein-kv', '../x.skein-kv', `${IDENTITY}.skein-kv`, 'notes.txt'])
    expect(parseName(name)).toBeNull();
});
