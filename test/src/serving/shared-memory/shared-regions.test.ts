import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { SharedRegions } from '../../../../src/serving/shared-memory/shared-regions.js';
import { temporaryFolder } from '../../../support/fresh-folders.js';
import { SharedObject } from '../support/shared-object.js';

const LIMITS = { maxRegions: 3, maxRegionBytes: 2 ** 21, maxBytes: 3 * 2 ** 20 };

function regions(limits = LIMITS): SharedRegions {
  const all = new SharedRegions(limits);
  onTestFinished(() => all.unregister());
  return all;
}

/** Of long ones the test runner's own comparison takes seconds. */
const isSame = (a: Uint8Array, b: Uint8Array) => Buffer.compare(a, b) === 0;
const numbers = (count: number) => Uint8Array.from({ length: count }, (_, i) => i % 251);

async function registered(bytes: Uint8Array, offset = 0) {
  const object = new SharedObject(bytes);
  const all = regions();
  await all.register({ name: 'r', key: object.key, offset, byteSize: bytes.length - offset });
  return { object, all };
}

const linux = process.platform === 'linux' ? describe : describe.skip;

linux('a region of shared memory', () => {
  it('is told of until it is unregistered', async () => {
    const { object, all } = await registered(numbers(100), 20);
    const status = { name: 'r', key: object.key, offset: 20, byteSize: 80 };
    expect(all.status()).toEqual([status]);
    expect(all.status('r')).toEqual([status]);
    expect(() => all.status('x')).toThrow("Unable to find system shared memory region: 'x'");
    all.unregister('x');
    all.unregister('r');
    expect(all.status()).toEqual([]);
    all.unregister('r');
  });

  // What is short is read on this thread, what is long on another.
  it.each([100, 2 ** 20])('of %i bytes is read and written in parts', async (size) => {
    const { object, all } = await registered(numbers(size), 10);
    const span = all.span('r', 5, size - 20);
    expect(isSame(await span.read(), numbers(size).subarray(15, size - 5))).toBe(true);
    await span.write('Y', Uint8Array.of(1, 2, 3));
    expect([...object.read().subarray(14, 19)]).toEqual([14, 1, 2, 3, 18]);
    await span.write('Y', numbers(size - 20));
    expect(isSame(object.read().subarray(15, size - 5), numbers(size - 20))).toBe(true);
    await expect(span.write('Y', numbers(size - 19))).rejects.toThrow(
      `shared memory size specified with the request for output 'Y' (${size - 20} bytes) should be at least ${size - 19} bytes`,
    );
    span.release();
  });

  it('shows what its client writes, and the other way round', async () => {
    const { object, all } = await registered(Uint8Array.of(1, 2, 3));
    object.write(Uint8Array.of(4, 5, 6));
    const span = all.span('r', 0, 3);
    expect([...(await span.read())]).toEqual([4, 5, 6]);
    span.release();
  });

  it.each([
    [101, 0, 'Invalid offset for'],
    [100, 0, 'Invalid offset for'],
    [99, 2, 'Invalid offset + byte size for'],
    [0, 101, 'Invalid offset + byte size for'],
    [0, Number.MAX_SAFE_INTEGER, 'Invalid offset + byte size for'],
  ])('has no part at %i of %i bytes', async (offset, size, message) => {
    const { all } = await registered(numbers(100));
    expect(() => all.span('r', offset, size)).toThrow(`${message} shared memory region: 'r'`);
  });

  it('stays while a request uses it, and can be registered anew meanwhile', async () => {
    const { object, all } = await registered(Uint8Array.of(1, 2, 3));
    const span = all.span('r', 0, 3);
    all.unregister();
    expect(() => all.span('r', 0, 3)).toThrow("Unable to find shared memory region: 'r'");
    const other = new SharedObject(Uint8Array.of(7, 8));
    await all.register({ name: 'r', key: other.key, offset: 0, byteSize: 2 });
    rmSync(object.path);
    expect([...(await span.read())]).toEqual([1, 2, 3]);
    span.release();
    span.release();
    const second = all.span('r', 0, 2);
    expect([...(await second.read())]).toEqual([7, 8]);
    second.release();
  });

  it.each([10, 2 ** 20])(
    'of %i bytes may become shorter: its requests fail, and nothing else',
    async (size) => {
      const { object, all } = await registered(numbers(size));
      const span = all.span('r', 0, size);
      object.shrink(size / 2);
      await expect(span.read()).rejects.toThrow("Invalid shared memory region: 'r' has become shorter");
      await expect(span.write('Y', numbers(size))).rejects.toThrow('has become shorter');
      expect(object.read()).toHaveLength(size / 2);
      object.write(numbers(size));
      expect(await span.read()).toHaveLength(size);
      span.release();
    },
  );
});

linux('registering', () => {
  it('is bounded in number, in bytes of each and of all', async () => {
    const all = regions();
    const long = new SharedObject(numbers(2 ** 21));
    const huge = new SharedObject(numbers(2 ** 21 + 1));
    const register = (name: string, { key }: SharedObject, byteSize: number) =>
      all.register({ name, key, offset: 0, byteSize });
    await expect(register('a', huge, 2 ** 21 + 1)).rejects.toThrow('--max-shared-memory-region-bytes');
    await register('a', long, 2 ** 21);
    await expect(register('b', long, 2 ** 20 + 1)).rejects.toThrow('--max-shared-memory-bytes');
    // Those that are being opened count as well.
    const both = await Promise.allSettled([register('b', long, 2 ** 20), register('c', long, 1)]);
    expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
    all.unregister('b');
    await register('b', long, 1);
    await register('c', long, 1);
    await expect(register('d', long, 1)).rejects.toThrow('--max-shared-memory-regions');
    all.unregister();
    await register('d', long, 1);
  });

  it('takes a name once', async () => {
    const { object, all } = await registered(numbers(10));
    const again = { name: 'r', key: object.key, offset: 0, byteSize: 1 };
    await expect(all.register(again)).rejects.toMatchObject({
      kind: 'exists',
      message: expect.stringContaining('already in manager'),
    });
    all.unregister();
    const both = await Promise.allSettled([all.register(again), all.register(again)]);
    expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  });

  it.each([
    ['longer than its object', { byteSize: 11 }],
    ['beyond the end of its object', { offset: 5, byteSize: 6 }],
    ['of no bytes', { byteSize: 0 }],
    ['at a negative place', { offset: -1 }],
    ['at no place', { offset: 0.5 }],
    ['of as many bytes as cannot be counted', { offset: 1, byteSize: Number.MAX_SAFE_INTEGER }],
  ])('refuses one that is %s', async (_, wrong) => {
    const { key } = new SharedObject(numbers(10));
    const region = { name: 'r', key, offset: 0, byteSize: 10, ...wrong };
    await expect(
      regions({ ...LIMITS, maxRegionBytes: 2 ** 53, maxBytes: 2 ** 53 }).register(region),
    ).rejects.toThrow("failed to register shared memory region 'r': invalid args");
  });

  it('reaches nothing but objects of shared memory', async () => {
    const folder = temporaryFolder('skein-secret');
    writeFileSync(`${folder}/secret`, 'secret');
    const inShm = (name: string) => {
      onTestFinished(() => rmSync(`/dev/shm/${name}`, { force: true, recursive: true }));
      return `/dev/shm/${name}`;
    };
    symlinkSync(`${folder}/secret`, inShm('skein-test-link'));
    mkdirSync(inShm('skein-test-folder'));
    writeFileSync('/dev/shm/skein-test-folder/file', 'secret');
    execFileSync('mkfifo', [inShm('skein-test-pipe')]);
    const keys = [
      'skein-test-link',
      'skein-test-folder',
      'skein-test-folder/file',
      'skein-test-pipe',
      '../../etc/hostname',
      '/../../etc/hostname',
      `..${folder}/secret`,
      '.',
      '..',
      '/',
      '',
      '//',
      'a\0b',
      'x'.repeat(300),
      'é'.repeat(200),
    ];
    for (const key of keys) {
      const region = { name: 'r', key, offset: 0, byteSize: 1 };
      await expect(regions().register(region), key).rejects.toMatchObject({ code: 'SKEIN_INFER' });
    }
    expect(regions().status()).toEqual([]);
  });

  it('opens no key that somebody makes up', async () => {
    const all = regions();
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary', maxLength: 20 }), async (key) => {
        const region = { name: 'r', key: `${key}/skein`, offset: 0, byteSize: 1 };
        const refused = await all.register(region).catch((error: { code: string }) => error.code);
        expect(refused).toBe('SKEIN_INFER');
      }),
    );
  });
});
