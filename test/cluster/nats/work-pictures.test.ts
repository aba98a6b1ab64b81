import { crc32 } from 'node:zlib';
import { expect, it } from 'vitest';
import type { BlocksAnswer, PictureMessage, WorkItem } from '../../../cluster/nats/messages.js';
import { WorkPictures, type WorkSight } from '../../../cluster/nats/work-pictures.js';

const BYTES = Uint8Array.from({ length: 10 }, (_, i) => i);
const REQUEST = { promptTokens: [1, 100, 101], maxNewTokens: 1, imageGrids: [[1, 1, 2]] };
const ITEM = {
  ...{ kind: 'work', gateway: 'g', id: 'g-1', attempt: 2, known: [], ended: [], request: {} },
  pictures: [{ digest: Uint8Array.of(1), width: 2, height: 1, numBytes: BYTES.length }],
} satisfies WorkItem;

const partOf = ({ offset, length }: PictureMessage): BlocksAnswer => {
  const bytes = BYTES.subarray(offset, offset + length);
  return { kind: 'blocksPart', bytes, sum: crc32(bytes) };
};

/** @param answer to the question of this number; undefined: what was asked for */
function setUp(answer: (question: number) => BlocksAnswer | null | undefined = () => undefined) {
  const asked: PictureMessage[] = [];
  const salts: bigint[] = [];
  const brought: Uint8Array[] = [];
  const fetchPicture = async (gateway: string, message: PictureMessage) => {
    expect(gateway).toBe('g');
    asked.push(message);
    const given = answer(asked.length);
    return given === undefined ? partOf(message) : given;
  };
  const sight: WorkSight = {
    check: () => {},
    rows: async (_, salt, bring) => {
      salts.push(salt);
      brought.push(await bring());
      return [Float32Array.of(1), Float32Array.of(2)];
    },
  };
  return { pictures: new WorkPictures(sight, { maxBytes: 4, fetchPicture }), asked, salts, brought };
}

it('brings a picture in slices, and makes its rows those of the request', async () => {
  const { pictures, asked, salts, brought } = setUp();
  const request = await pictures.bring(ITEM, { ...REQUEST, cacheSalt: 7n }, () => true);
  expect(request).toEqual({
    ...{ ...REQUEST, cacheSalt: 7n },
    promptEmbeddings: [Float32Array.of(1), Float32Array.of(2)],
    joinedEmbeddings: expect.anything(),
  });
  expect(request.joinedEmbeddings!.take()).toEqual(Float32Array.of(1, 2));
  expect([brought, salts]).toEqual([[BYTES], [7n]]);
  expect(asked.map(({ id, attempt, index, offset, length }) => [id, attempt, index, offset, length])).toEqual(
    [
      ['g-1', 2, 0, 0, 4],
      ['g-1', 2, 0, 4, 4],
      ['g-1', 2, 0, 8, 2],
    ],
  );
});

it('asks again for a picture of which a slice was lost, damaged or cut, as long as it is wanted', async () => {
  const damaged = { kind: 'blocksPart', bytes: BYTES.subarray(0, 4), sum: 5 } as const;
  const cut = { kind: 'blocksPart', bytes: BYTES.subarray(0, 1), sum: crc32(BYTES.subarray(0, 1)) } as const;
  const { pictures, asked, brought } = setUp((question) => [null, damaged, cut][question - 1]);
  await pictures.bring(ITEM, REQUEST, () => true);
  expect(brought).toEqual([BYTES]);
  expect(asked).toHaveLength(6);
  const gone = setUp(() => null);
  await expect(gone.pictures.bring(ITEM, REQUEST, () => gone.asked.length < 3)).rejects.toThrow('not wanted');
});

it('brings a picture itself where another request that was to bring it is not wanted any more', async () => {
  // The first to ask brings the rows for both.
  let shared: Promise<readonly Float32Array[]> | null = null;
  const sight: WorkSight = {
    check: () => {},
    rows: (_, __, bring) => {
      shared ??= bring()
        .then(() => [Float32Array.of(3)])
        .finally(() => (shared = null));
      return shared;
    },
  };
  let isWanted = true;
  let answered = () => {};
  const waiting = new Promise<void>((resolve) => {
    answered = resolve;
  });
  let isFirst = true;
  const fetchPicture = async (_: string, message: PictureMessage) => {
    if (isFirst) {
      isFirst = false;
      await waiting;
      return null;
    }
    return partOf(message);
  };
  const both = new WorkPictures(sight, { maxBytes: 100, fetchPicture });
  const left = both.bring(ITEM, REQUEST, () => isWanted);
  const stays = both.bring({ ...ITEM, id: 'g-2' }, REQUEST, () => true);
  isWanted = false;
  answered();
  await expect(left).rejects.toThrow('not wanted');
  expect((await stays).promptEmbeddings).toEqual([Float32Array.of(3)]);
});

it('refuses pictures that its model does not take', async () => {
  const blind = new WorkPictures(null, { maxBytes: 4, fetchPicture: async () => null });
  await expect(blind.bring(ITEM, REQUEST, () => true)).rejects.toThrow(
    "The request has pictures, and the worker's model takes none.",
  );
});
