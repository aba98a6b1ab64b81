import { randomBytes, randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StoreError, TakenOverError } from '../../../../base/store-errors.js';
import { FolderContents } from '../../../../src/server/files/folder-contents.js';
import { FolderRecords } from '../../../../src/server/files/folder-records.js';
import { MemoryRecords } from '../../../../src/server/files/memory-records.js';
import type { ContentStore, RecordStore } from '../../../../src/server/files/record-store.js';
import { NATS_MODULES, NatsStores } from '../../../../tools/support/queue/nats-stores.js';
import { freshFolders } from '../../../support/fresh-folders.js';
import { describeWithNats, testNats } from '../../support/test-nats.js';

const freshFolder = freshFolders('skein-stores');
let shared: NatsStores;
let count = 0;
const bucket = () => `B${count++}`;

beforeAll(async () => {
  if (testNats !== null) shared = await NatsStores.start();
});
afterAll(() => (testNats === null ? undefined : shared.close()));
const withNats = <T>(open: () => T) => (testNats === null ? {} : { NATS: open });

const RECORDS: Record<string, () => RecordStore> = {
  memory: () => new MemoryRecords(),
  folder: () => {
    const folder = freshFolder();
    return new FolderRecords(async () => folder);
  },
  ...withNats(() => shared.records(bucket())),
};

const byKey = (records: readonly { key: string; text: string }[]) =>
  records.map(({ key, text }) => [key, text]).sort();

describe.each(Object.entries(RECORDS))('records in %s', (_, open) => {
  it('are written in place of the revision that was read, and by one of two alone', async () => {
    const records = open();
    expect(await records.get('a')).toBeNull();
    const first = await records.put('a', 'one', 0);
    expect(first).toBeGreaterThan(0);
    expect(await records.put('a', 'other', 0)).toBeNull();
    expect(await records.get('a')).toMatchObject({ key: 'a', text: 'one', revision: first });
    const tries = await Promise.all(['x', 'y', 'z'].map((text) => records.put('a', text, first!)));
    expect(tries.filter((revision) => revision !== null)).toHaveLength(1);
    const now = (await records.get('a'))!;
    expect(now.revision).toBe(tries.find((revision) => revision !== null));
    expect(['x', 'y', 'z']).toContain(now.text);
    expect(await records.put('a', 'late', first!)).toBeNull();
  });

  it('are removed, and made again', async () => {
    const records = open();
    expect(await records.remove('a')).toBe(false);
    const first = await records.put('a', 'one', 0);
    expect(await records.remove('a')).toBe(true);
    expect(await records.get('a')).toBeNull();
    expect(await records.list()).toEqual([]);
    expect(await records.put('a', 'two', first!)).toBeNull();
    expect(await records.put('a', 'three', 0)).toBeGreaterThan(0);
    expect((await records.get('a'))!.text).toBe('three');
  });

  it('are listed by the words of their keys, and are the same objects where nothing has changed', async () => {
    const records = open();
    for (const key of ['a.x', 'a.y', 'b.x', 'ab']) await records.put(key, `of ${key}`, 0);
    expect(byKey(await records.list())).toEqual(['a.x', 'a.y', 'ab', 'b.x'].map((key) => [key, `of ${key}`]));
    expect(byKey(await records.list('a'))).toEqual([
      ['a.x', 'of a.x'],
      ['a.y', 'of a.y'],
    ]);
    const before = await records.list('a');
    await records.put('b.y', '', 0);
    const after = await records.list('a');
    for (const one of before) expect(after).toContain(one);
    expect(byKey(await records.list('b'))).toEqual([
      ['b.x', 'of b.x'],
      ['b.y', ''],
    ]);
  });

  it('have texts of any length and content', async () => {
    const records = open();
    const texts = [
      '',
      '#parts x',
      '#parts 000000000000000000000000 1 x',
      'ß'.repeat(1_500_000),
      '\n\r\u2028"',
    ];
    for (const [i, text] of texts.entries()) await records.put(`k${i}`, text, 0);
    for (const [i, text] of texts.entries()) expect((await records.get(`k${i}`))!.text === text).toBe(true);
    const { revision } = (await records.get('k3'))!;
    await records.put('k3', 'short', revision);
    expect((await records.get('k3'))!.text).toBe('short');
    expect((await records.list()).map(({ key }) => key).sort()).toEqual(['k0', 'k1', 'k2', 'k3', 'k4']);
  });
});

const CONTENTS: Record<string, () => ContentStore> = {
  folder: () => {
    const folder = freshFolder();
    return new FolderContents(async () => folder);
  },
  ...withNats(() => shared.contents(bucket())),
};

const newId = () => `file-${randomUUID().replaceAll('-', '')}`;
const bytesOf = async (store: ContentStore, id: string): Promise<Buffer | null> => {
  const pieces: Buffer[] = [];
  const content = await store.read(id);
  if (content === null) return null;
  for await (const piece of content) pieces.push(piece);
  return Buffer.concat(pieces);
};

describe.each(Object.entries(CONTENTS))('contents in a %s', (_, open) => {
  it('are written piece by piece, read and removed', async () => {
    const store = open();
    const id = newId();
    expect([await store.read(id), await store.size(id)]).toEqual([null, null]);
    const content = randomBytes(3_000_000);
    const writer = await store.begin(id);
    for (let at = 0; at < content.length; at += 700_000)
      await writer.append(content.subarray(at, at + 700_000));
    expect(await store.ids()).toEqual([id]);
    await writer.finish();
    expect(await store.size(id)).toBe(content.length);
    expect((await bytesOf(store, id))!.equals(content)).toBe(true);
    await store.remove(id);
    expect([await store.read(id), await store.ids()]).toEqual([null, []]);
    const dropped = await store.begin(id);
    await dropped.append(content.subarray(0, 10));
    await dropped.discard();
    expect(await store.ids()).toEqual([]);
  });

  it('are gone on with where they end', async () => {
    const store = open();
    const [id, other] = [newId(), newId()];
    const writer = await store.goOn(id, 0);
    const beside = await store.goOn(other, 0);
    await beside.append(Buffer.from('other\n'));
    await beside.finish();
    await Promise.all(['one\n', 'two\n', 'three'].map((line) => writer.append(Buffer.from(line))));
    expect((await bytesOf(store, id))!.toString()).toBe('one\ntwo\nthree');
    await writer.finish();
    const next = await store.goOn(id, 13);
    await next.append(Buffer.from('four\n'));
    await next.finish();
    expect((await bytesOf(store, id))!.toString()).toBe('one\ntwo\nthreefour\n');
    expect((await bytesOf(store, other))!.toString()).toBe('other\n');
  });
});

/** Writes a text in place of a revision, however long the server is away. */
async function noted(records: RecordStore, text: string, revision: number): Promise<number> {
  try {
    const written = await records.put('k', text, revision);
    expect(written).toBeGreaterThan(revision);
    return written!;
  } catch (error) {
    if (!(error instanceof StoreError) || error.kind !== 'away') throw error;
    // It may have been written, although no answer says so.
    const now = await records.get('k').catch(() => null);
    return now?.text === text ? now.revision : noted(records, text, revision);
  }
}

describeWithNats('a content in a NATS server', () => {
  it('has one writer: who was before the last one hears of it, and has written nothing', async () => {
    const store = shared.contents(bucket());
    const id = newId();
    const before = await store.goOn(id, 0);
    await before.append(Buffer.from('one\n'));
    const after = await store.goOn(id, 4);
    await after.append(Buffer.from('two\n'));
    await expect(before.append(Buffer.from('late\n'))).rejects.toBeInstanceOf(TakenOverError);
    await expect(before.append(Buffer.from('later\n'))).rejects.toBeInstanceOf(TakenOverError);
    await after.append(Buffer.from('three\n'));
    expect((await bytesOf(store, id))!.toString()).toBe('one\ntwo\nthree\n');
  });

  it('does not have a piece whose writer died in the middle of it', async () => {
    const name = bucket();
    const store = shared.contents(name);
    const id = newId();
    const long = randomBytes(700_000);
    await (await store.goOn(id, 0)).append(Buffer.from('one\n'));
    const headers = NATS_MODULES.nats.headers();
    headers.set('Skein-End', String(4 + 262_144));
    headers.set('Skein-Begin', '4');
    await shared.nc.request(`${name.toLowerCase()}.${id}`, long.subarray(0, 262_144), {
      headers,
      timeout: 5000,
    });
    expect([await store.size(id), (await bytesOf(store, id))!.toString()]).toEqual([4, 'one\n']);
    const next = await store.goOn(id, 4);
    await next.append(long);
    await next.append(Buffer.from('two\n'));
    const expected = Buffer.concat([Buffer.from('one\n'), long, Buffer.from('two\n')]);
    expect((await bytesOf(store, id))!.equals(expected)).toBe(true);
    await expect(store.goOn(id, 4)).rejects.toMatchObject({ kind: 'away' });
  });

  it('takes each piece once through deaths of the server, and what was there is there', async () => {
    const store = shared.contents(bucket());
    const records = shared.records(bucket());
    const id = newId();
    const writer = await store.goOn(id, 0);
    const lines = Array.from({ length: 60 }, (_, i) => `line ${i}\n`);
    let revision = 0;
    for (const [i, line] of lines.entries()) {
      const writing = writer.append(Buffer.from(line));
      const noting = noted(records, String(i), revision);
      if (i % 20 === 10) {
        await shared.server.kill();
        await shared.server.startAgain();
      }
      await writing;
      revision = await noting;
    }
    expect((await bytesOf(store, id))!.toString()).toBe(lines.join(''));
    expect((await records.get('k'))!.text).toBe('59');
  });

  it('is read to its end through a death of the server, however long its reader takes', async () => {
    const name = bucket();
    const store = shared.contents(name);
    const id = newId();
    const content = randomBytes(6_000_000);
    const writer = await store.begin(id);
    for (let at = 0; at < content.length; at += 100_000)
      await writer.append(content.subarray(at, at + 100_000));
    const pieces: Buffer[] = [];
    for await (const piece of (await store.read(id))!) {
      pieces.push(piece);
      if (pieces.length === 3) {
        await shared.server.kill();
        await shared.server.startAgain();
      }
    }
    expect(Buffer.concat(pieces).equals(content)).toBe(true);
  });

  it('and a record are refused with a sentence where the server is full, or away', async () => {
    const small = shared.contents(bucket(), { maxBytes: 4096 });
    const writer = await small.begin(newId());
    await expect(writer.append(randomBytes(5000))).rejects.toThrow(/has no room/);
    const records = shared.records(bucket(), { maxBytes: 4096 });
    await expect(records.put('k', 'x'.repeat(5000), 0)).rejects.toThrow(/has no room/);
    expect(await records.get('k')).toBeNull();
    await shared.server.kill();
    const refused = records.get('k');
    await expect(refused).rejects.toMatchObject({
      kind: 'away',
      message: expect.stringContaining('does not answer'),
    });
    await shared.server.startAgain();
  });

  it('or a record that somebody else has put there fails alone', async () => {
    const name = bucket();
    const records = shared.records(name);
    await records.put('good', 'text', 0);
    const put = (key: string, text: string) => shared.nc.request(`$KV.${name}.${key}`, text);
    await put('bad', `#parts ${'0'.repeat(24)} 3 ${'0'.repeat(64)}`);
    await expect(records.get('bad')).rejects.toMatchObject({ kind: 'foreign' });
    expect(byKey(await records.list())).toEqual([['good', 'text']]);
    expect(await records.get('../good')).toBeNull();
    const stream = bucket();
    const contents = shared.contents(stream);
    await contents.open();
    const [foreign, good] = [newId(), newId()];
    await shared.nc.request(`${stream.toLowerCase()}.${foreign}`, 'no piece');
    await (await contents.goOn(good, 0)).append(Buffer.from('x'));
    await expect(contents.read(foreign)).rejects.toBeInstanceOf(StoreError);
    expect((await bytesOf(contents, good))!.toString()).toBe('x');
    await contents.remove(foreign);
    expect(await contents.ids()).toEqual([good]);
  });

  it('is told of by signs of life, which end with the process', async () => {
    const name = bucket();
    const [one, other] = [shared.presence(name, 'one'), shared.presence(name, 'other')];
    await one.start();
    await other.start();
    const look = one.looker();
    expect(await look(['one', 'other', 'third'])).toEqual(new Set());
    await other.close();
    expect(await look(['other', 'third'])).toEqual(new Set());
    expect(await look(['other', 'third'])).toEqual(new Set(['third']));
    expect(await look(['other', 'third'])).toEqual(new Set(['other', 'third']));
    await one.close();
  });
});

describe('records in a folder', () => {
  it('are those that were written there before, and what is none of them is an empty text', async () => {
    const folder = freshFolder();
    await new FolderRecords(async () => folder).put('a', 'one', 0);
    writeFileSync(join(folder, 'notes.txt'), 'x');
    writeFileSync(join(folder, 'long.json'), ' '.repeat(2 ** 20 + 1));
    const records = new FolderRecords(async () => folder);
    expect(byKey(await records.list())).toEqual([
      ['a', 'one'],
      ['long', ''],
    ]);
  });
});
