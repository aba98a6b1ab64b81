import { expect, it } from 'vitest';
import { StoreError } from '../../../../base/store-errors.js';
import { FolderContents } from '../../../../src/server/files/folder-contents.js';
import { MemoryRecords } from '../../../../src/server/files/memory-records.js';
import type { RecordStore, SharedStores } from '../../../../src/server/files/record-store.js';
import { freshFolders } from '../../../support/fresh-folders.js';
import { answersOf, batchOf, begin, line, storingServers, until } from './support.js';

const storing = storingServers();
const freshFolder = freshFolders('skein-struck-batches');
const COMPLETED = /"status":"completed"/;

/** Stores that others share, of which a test answers for the records of batches. */
function storesOf(batches: RecordStore, files: RecordStore = new MemoryRecords()): SharedStores {
  const folder = freshFolder();
  return {
    files: { records: files, contents: new FolderContents(async () => folder) },
    batches,
    responses: new MemoryRecords(),
    presence: { id: 'one', looker: () => async () => new Set(), isThere: async () => true },
  };
}

const away = () => new StoreError('away', 'The NATS server does not answer.');

it('keeps the files of a batch whose end was written, with nobody to say so', async () => {
  const batches = new MemoryRecords();
  const files = new MemoryRecords();
  const removed: string[] = [];
  files.remove = async (key) => {
    removed.push(key);
    return MemoryRecords.prototype.remove.call(files, key);
  };
  let numEnds = 0;
  let writtenAgain = () => {};
  const again = new Promise<void>((resolve) => {
    writtenAgain = resolve;
  });
  batches.put = async (key, text, revision) => {
    const written = await MemoryRecords.prototype.put.call(batches, key, text, revision);
    if (!COMPLETED.test(text)) return written;
    if (++numEnds === 1) throw away();
    writtenAgain();
    return written;
  };
  const server = storing(undefined, { stores: storesOf(batches, files) });
  const { id } = await begin(server, [line('a')]);
  const ended = await until(server, id);
  await again;
  expect(ended.status).toBe('completed');
  expect(removed).not.toContain(ended.output_file_id);
  expect([...(await answersOf(server, ended.output_file_id)).keys()]).toEqual(['a']);
});

it('shows a batch as ended when its record says so to all', async () => {
  const batches = new MemoryRecords();
  let isFirst = true;
  let shown = '';
  batches.put = async (key, text, revision) => {
    if (COMPLETED.test(text) && isFirst) {
      isFirst = false;
      shown = (await batchOf(server, key)).status;
      throw away();
    }
    return MemoryRecords.prototype.put.call(batches, key, text, revision);
  };
  const server = storing(undefined, { stores: storesOf(batches) });
  const { id } = await begin(server, [line('a')]);
  expect((await until(server, id)).status).toBe('completed');
  expect(shown).toBe('finalizing');
});
