import { describe, expect, it } from 'vitest';
import type { InferResponse } from '../../../../callbacks/infer/infer-types.js';
import { GenerateStream } from '../../../../src/server/kserve/generate-stream.js';
import type { EventStream } from '../../../../src/server/web/event-stream.js';
import { MemoryLedger } from '../../../../src/server/web/memory/held-memory.js';
import { RequestMemory } from '../../../../src/server/web/memory/request-memory.js';
import { FakeModel, fakeConfig } from './support/fake-models.js';

/** A client that reads only when it is asked to. */
class SlowClient {
  closed = false;
  isBehind = false;
  readonly events: string[] = [];

  write(text: string): void {
    this.events.push(text);
  }
}

function streamTo(client: SlowClient, own = 1000) {
  const ledger = new MemoryLedger({ limit: 1e6 });
  const memory = new RequestMemory(ledger.open('request'), ledger.limit);
  memory.keep(own);
  const failures: unknown[] = [];
  const model = new FakeModel(fakeConfig({ name: 'toy', type: 'TYPE_STRING', dims: [1] }));
  const stream = new GenerateStream(client as unknown as EventStream, { model, id: '', memory }, (error) =>
    failures.push(error),
  );
  return { stream, ledger, memory, failures };
}

const response = (): InferResponse => ({
  outputs: [],
  parameters: { text: 'x'.repeat(1000) },
});

describe('a stream of generated responses', () => {
  it('gives back what a client that was behind made it hold, each time', () => {
    const client = new SlowClient();
    const { stream, ledger, failures } = streamTo(client);
    for (let i = 0; i < 5000; i++) {
      client.isBehind = true;
      stream.write(response());
      expect(ledger.held).toBeGreaterThan(1900);
      client.isBehind = false;
      stream.release();
      expect(ledger.held).toBe(1000);
    }
    expect(failures).toEqual([]);
    expect(client.events).toHaveLength(5000);
  });

  it('holds nothing for a client that reads', () => {
    const client = new SlowClient();
    const { stream, ledger } = streamTo(client);
    stream.write(response());
    expect(ledger.held).toBe(1000);
  });

  it('fails where a client that is behind would make it hold more than there is', () => {
    const client = new SlowClient();
    const { stream, ledger, failures } = streamTo(client);
    client.isBehind = true;
    while (failures.length === 0) stream.write(response());
    expect(failures).toMatchObject([{ status: 429 }]);
    expect(ledger.held).toBeLessThanOrEqual(1e6);
  });
});
