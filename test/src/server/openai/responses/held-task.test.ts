import { expect, it } from 'vitest';
import { StoreError } from '../../../../../base/store-errors.js';
import type { ContentWriter } from '../../../../../src/server/files/record-store.js';
import { EventLog } from '../../../../../src/server/openai/responses/event-log.js';
import { HeldTask, type TaskPlace } from '../../../../../src/server/openai/responses/held-task.js';
import type { ActiveResponse } from '../../../../../src/server/openai/responses/response-store.js';
import type { ResponseTask } from '../../../../../src/server/openai/responses/response-task.js';

const away = () => new StoreError('away', 'The NATS server does not answer.');
const frame = (name: string) => `event: ${name}\ndata: {}\n\n`;

/** A place whose content stores what comes, and may answer that it is away. */
function placeOf(stored: string[], fails: () => boolean, more: Partial<TaskPlace> = {}): TaskPlace {
  const writer: ContentWriter = {
    append: async (bytes) => {
      stored.push(Buffer.from(bytes).toString());
      if (fails()) throw away();
    },
    finish: async () => {},
    discard: async () => {},
  };
  const length = () => Buffer.byteLength(stored.join(''));
  return {
    content: async (bytes) => {
      if (bytes !== length()) throw away();
      return writer;
    },
    eventBytes: async () => length(),
    confirm: async () => true,
    remove: async () => {},
    over: () => {},
    ...more,
  };
}

const taskOf = (place: TaskPlace, events: EventLog) => {
  const held = new HeldTask({ isCancelled: false, isDiscarded: false } as ResponseTask, 0, place);
  held.attach({ events } as ActiveResponse);
  return held;
};

it('stores each event once, also where it is not told that some were stored before others came', async () => {
  const stored: string[] = [];
  const events = new EventLog();
  const names = ['a', 'b', 'c'];
  const place = placeOf(stored, () => stored.length === 1);
  const held = taskOf(place, events);
  let failed = () => {};
  const hasFailed = new Promise<void>((resolve) => {
    failed = resolve;
  });
  const { content } = place;
  place.content = async (bytes) => {
    const writer = await content(bytes);
    return {
      ...writer,
      append: (piece) =>
        writer.append(piece).catch((error: unknown) => {
          failed();
          throw error;
        }),
    };
  };
  events.append(frame(names[0]!));
  await hasFailed;
  for (const name of names.slice(1)) events.append(frame(name));
  let isKept = false;
  await held.finish(
    async () => {
      isKept = true;
    },
    async () => {},
  );
  expect([stored.join(''), isKept]).toEqual([names.map(frame).join(''), true]);
});

it('ends where the store was erased: its events have no place, and its record is gone', async () => {
  const events = new EventLog();
  const refused = { content: async () => Promise.reject(away()), confirm: async () => false };
  const held = taskOf(
    placeOf([], () => false, refused),
    events,
  );
  events.append(frame('a'));
  let isKept = false;
  await held.finish(
    async () => {
      isKept = true;
    },
    async () => {},
  );
  expect(isKept).toBe(false);
});

it.each([
  ['is taken away again where it was deleted while it was being kept', true],
  ['stays where it was not', false],
])('what was kept %s', async (_, isDeleted) => {
  const done: string[] = [];
  let marked = false;
  const place = placeOf([], () => false, {
    confirm: async () => {
      done.push('confirm');
      if (marked) held.meet({ isCancelled: false, isDiscarded: true } as ResponseTask, 2);
      return true;
    },
    remove: async () => void done.push('remove'),
  });
  const held = new HeldTask({ isCancelled: false, isDiscarded: false } as ResponseTask, 0, place);
  await held.finish(
    async () => {
      done.push('keep');
      marked = isDeleted;
    },
    async () => void done.push('forget'),
  );
  expect(done).toEqual(['confirm', 'keep', 'confirm', ...(isDeleted ? ['forget'] : []), 'remove']);
});
