import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StoreError } from '../../../../base/store-errors.js';
import type { NatsContents } from '../../../../cluster/nats/nats-contents.js';
import { FileStore } from '../../../../src/server/files/file-store.js';
import { MemoryRecords } from '../../../../src/server/files/memory-records.js';
import type { ContentStore } from '../../../../src/server/files/record-store.js';
import { NATS_MODULES, NatsStores } from '../../../../tools/support/queue/nats-stores.js';
import { describeWithNats, testNats } from '../../support/test-nats.js';
import { type Answer, answeredConnection, NO_MESSAGE } from './answered-connection.js';

const { TimeoutError } = NATS_MODULES.nats.errors;

let shared: NatsStores;
let count = 0;
const bucket = () => `S${count++}`;
const newId = () => `file-${randomUUID().replaceAll('-', '')}`;

beforeAll(async () => {
  if (testNats !== null) shared = await NatsStores.start();
});
afterAll(() => (testNats === null ? undefined : shared.close()));

const LINES = Array.from({ length: 80 }, (_, i) => `line ${i}\n`);

/** A content of more pieces than are fetched at once. */
async function written(name: string): Promise<string> {
  const id = newId();
  const writer = await shared.contents(name).begin(id);
  await Promise.all(LINES.map((line) => writer.append(Buffer.from(line))));
  return id;
}

const readText = async (store: NatsContents, id: string, onPiece = () => {}): Promise<string> => {
  let text = '';
  for await (const piece of (await store.read(id))!) {
    text += piece.toString();
    onPiece();
  }
  return text;
};

/** Says that it has no message where it is asked for the first time. */
function behind(): Answer {
  let isFirst = true;
  return (subject) => {
    if (!isFirst || !subject.startsWith('STREAM.MSG.GET.')) return null;
    isFirst = false;
    return NO_MESSAGE;
  };
}

describeWithNats('what is taken away', () => {
  it('goes message by message, since an old server may apply a purge again to more than its subject', async () => {
    const name = bucket();
    const [id, other] = [await written(name), await written(name)];
    const asked: string[] = [];
    const connection = answeredConnection(shared.nc, (subject) => {
      asked.push(subject);
      return null;
    });
    const store = shared.contents(name, {}, connection);
    await store.remove(id);
    expect([await store.size(id), await store.ids()]).toEqual([null, [other]]);
    expect(await readText(store, other)).toBe(LINES.join(''));
    const records = shared.records(bucket(), {}, connection);
    await records.open();
    // More than a message holds: its parts go too.
    const text = 'x'.repeat(3 * 2 ** 20);
    await records.put('a', text, (await records.put('a', text, 0))!);
    await records.put('b', 'kept', 0);
    expect([await records.remove('a'), await records.remove('a'), await records.get('a')]).toEqual([
      true,
      false,
      null,
    ]);
    expect((await records.list()).map(({ key }) => key)).toEqual(['b']);
    const { streams } = await NATS_MODULES.jetstream.jetstreamManager(shared.nc);
    expect((await streams.info(`KV_S${count - 1}`)).state.messages).toBe(1);
    expect(asked.filter((subject) => subject.includes('PURGE'))).toEqual([]);
    expect(asked.filter((subject) => subject.startsWith('STREAM.MSG.DELETE.')).length).toBeGreaterThan(
      LINES.length,
    );
  });
});

describeWithNats('a content of which a part was read', () => {
  it('is read on where NATS is away for longer than a question is repeated', async () => {
    const name = bucket();
    const id = await written(name);
    let numAway = 0;
    const answer = (subject: string) =>
      subject.startsWith('CONSUMER.CREATE.') && numAway > 0 && numAway-- > 0 ? new TimeoutError() : null;
    const store = shared.contents(name, {}, answeredConnection(shared.nc, answer));
    let pieces = 0;
    const text = await readText(store, id, () => {
      if (++pieces === 1) numAway = 5;
    });
    expect([text, numAway]).toEqual([LINES.join(''), 0]);
  });

  it('is read on where nothing comes and the server does not say why', async () => {
    const name = bucket();
    const id = await written(name);
    let pieces = 0;
    let numDropped = 0;
    // The first question after the first part is lost, and with it its consumer.
    const drops = (subject: string) =>
      subject.startsWith('CONSUMER.MSG.NEXT.') && pieces > 0 && numDropped++ === 0;
    const answer = (subject: string) => (subject.startsWith('CONSUMER.INFO.') ? new TimeoutError() : null);
    const store = shared.contents(name, {}, answeredConnection(shared.nc, answer, drops));
    const text = await readText(store, id, () => {
      pieces++;
    });
    expect(text).toBe(LINES.join(''));
    expect(numDropped).toBeGreaterThan(1);
  });

  it('is away, and not damaged, where it has grown meanwhile or the server does not have all of it', async () => {
    const name = bucket();
    const id = await written(name);
    const store = shared.contents(name);
    const whole = LINES.join('').length;
    await expect(store.goOn(id, whole - 1)).rejects.toMatchObject({ kind: 'away' });
    await expect(store.read(id, 0, whole + 1)).rejects.toMatchObject({ kind: 'away' });
    expect(await store.read(id, 0, whole)).not.toBeNull();
  });
});

describeWithNats('a server that leads a cluster since a moment ago', () => {
  it('is not believed that a record or a content is missing before it has caught up', async () => {
    const [name, stream] = [bucket(), bucket()];
    await shared.records(name).put('a', 'text', 0);
    const id = await written(stream);
    const late = () => answeredConnection(shared.nc, behind());
    expect(await shared.records(name, {}, late()).get('a')).toMatchObject({ text: 'text' });
    expect(await shared.contents(stream, {}, late()).size(id)).toBe(LINES.join('').length);
    expect(await readText(shared.contents(stream, {}, late()), id)).toBe(LINES.join(''));
    const nc = answeredConnection(shared.nc, () => null);
    expect(await shared.records(name, {}, nc).get('b')).toBeNull();
    expect(await shared.contents(stream, {}, nc).read(newId())).toBeNull();
  });

  it('does not have a stream made again of which it does not know yet', async () => {
    const name = bucket();
    await shared.records(name).put('a', 'text', 0);
    const asked: string[] = [];
    const answer: Answer = (subject) => {
      asked.push(subject);
      const isFirst = asked.filter((one) => one.startsWith('STREAM.INFO.')).length === 1;
      return subject.startsWith('STREAM.INFO.') && isFirst
        ? { error: { code: 404, err_code: 10059, description: 'stream not found' } }
        : null;
    };
    await shared.records(name, {}, answeredConnection(shared.nc, answer)).open();
    expect(asked.filter((subject) => subject.startsWith('STREAM.CREATE.'))).toEqual([]);
  });

  it('lists what is left where the last record goes before it has told of it', async () => {
    const name = bucket();
    const records = shared.records(name);
    for (const key of ['x.a', 'x.b']) await records.put(key, `of ${key}`, 0);
    // It knows of both records when it makes the consumer, which is not read yet.
    const late = Object.create(shared.nc, {
      request: {
        value: async (...args: Parameters<typeof shared.nc.request>) => {
          const made = await shared.nc.request(...args);
          if (args[0].includes('CONSUMER.CREATE.')) await records.remove('x.b');
          return made;
        },
      },
    });
    const listed = await shared.records(name, {}, late).list('x');
    expect(listed.map(({ key, text }) => [key, text])).toEqual([['x.a', 'of x.a']]);
  });

  it('lists records too that the one that told of them had not heard of', async () => {
    const name = bucket();
    for (const key of ['x.a', 'x.b', 'y']) await shared.records(name).put(key, `of ${key}`, 0);
    const nc = answeredConnection(shared.nc, () => null);
    // What it reports has none of them yet.
    const { request } = nc;
    const late = Object.create(nc, {
      request: {
        value: async (...args: Parameters<typeof request>) => {
          const found = await request(...args);
          if (!args[0].includes('CONSUMER.CREATE.')) return found;
          return { data: Buffer.from(JSON.stringify({ ...found.json<object>(), num_pending: 0 })) };
        },
      },
    });
    const listed = await shared.records(name, {}, late).list('x');
    expect(listed.map(({ key, text }) => [key, text]).sort()).toEqual([
      ['x.a', 'of x.a'],
      ['x.b', 'of x.b'],
    ]);
  });
});

describe('the content of a file', () => {
  const away = new StoreError('away', 'The NATS server does not answer.');
  const contents = (read: ContentStore['read']) => ({ read }) as ContentStore;
  const fileOf = async (store: FileStore, bytes: number) =>
    store.record(newId(), 'a', bytes, { filename: 'a', purpose: 'batch' });

  it('is refused before a byte of it is given where its first piece cannot be read', async () => {
    const read = async () =>
      // biome-ignore lint/correctness/useYield: it fails before its first piece
      (async function* (): AsyncGenerator<Buffer> {
        throw away;
      })();
    const store = new FileStore({ shared: { records: new MemoryRecords(), contents: contents(read) } });
    const file = await fileOf(store, 4);
    await expect(store.of({ name: 'a' }).content(file)).rejects.toBe(away);
  });

  it('has every piece, and ends its reading where nobody wants the rest', async () => {
    let numEnded = 0;
    const asked: unknown[] = [];
    const read = async (...args: unknown[]) => {
      asked.push(args.slice(1));
      return (async function* (): AsyncGenerator<Buffer> {
        try {
          for (const piece of ['a', 'b', 'c']) yield Buffer.from(piece);
        } finally {
          numEnded++;
        }
      })();
    };
    const store = new FileStore({ shared: { records: new MemoryRecords(), contents: contents(read) } });
    const own = store.of({ name: 'a' });
    const file = await fileOf(store, 3);
    const pieces: string[] = [];
    for await (const piece of await own.content(file)) pieces.push(piece.toString());
    expect([pieces, numEnded]).toEqual([['a', 'b', 'c'], 1]);
    for await (const _ of await own.content(file)) break;
    expect(numEnded).toBe(2);
    // A server that has fewer bytes than the record says has not caught up.
    expect(asked).toEqual([
      [0, 3],
      [0, 3],
    ]);
  });
});
