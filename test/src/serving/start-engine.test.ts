import { expect, it } from 'vitest';
import type { CloseOptions } from '../../../host/in-process-host.js';
import { startEngine } from '../../../src/serving/start-engine.js';

/** A host that loads for ever, and notes how it is closed. */
function loadingHost() {
  const closed: CloseOptions[] = [];
  return {
    closed,
    info: null,
    failure: null,
    pid: null,
    ready: new Promise<never>(() => {}),
    close: async (options: CloseOptions = {}) => {
      closed.push(options);
    },
  };
}

it('a load that is given up is ended after a moment, however long it would take', async () => {
  const host = loadingHost();
  const giveUp = new AbortController();
  const starting = startEngine({
    options: { signal: giveUp.signal } as never,
    startHost: () => host as never,
    openCodec: async () => ({ close: () => {} }),
  });
  giveUp.abort(new Error('interrupted'));
  await expect(starting).rejects.toThrow('interrupted');
  expect(host.closed).toEqual([{ abort: true, terminateAfterMs: 1000 }]);
});

it('a load that fails takes its tokenizer with it, and is ended in peace', async () => {
  let open = true;
  const host = { ...loadingHost(), ready: Promise.reject(new Error('no memory')) };
  const starting = startEngine({
    options: {} as never,
    startHost: () => host as never,
    openCodec: async () => ({
      close: () => {
        open = false;
      },
    }),
  });
  await expect(starting).rejects.toThrow('no memory');
  expect(host.closed).toEqual([{ abort: true }]);
  expect(open).toBe(false);
});
