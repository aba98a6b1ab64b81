import { afterAll, afterEach, beforeAll } from 'vitest';
import type { NatsPresence } from '../../../../cluster/nats/nats-presence.js';
import type { ApiKey } from '../../../../src/server/web/access/api-keys.js';
import { NatsStores } from '../../../../tools/support/queue/nats-stores.js';
import type { Script } from '../../support/fake-engine.js';
import { testNats } from '../../support/test-nats.js';
import { say } from '../../support/toy-server.js';
import { type StoringServer, storingServer } from './support.js';

/** A server that shares what it stores. */
export interface SharingServer {
  server: StoringServer;
  presence: NatsPresence;
  /** Ends its connection: for the others this is as if it were dead. */
  cut: () => Promise<void>;
}

/** Makes servers over one NATS server, each with a connection of its own, which end after each test. */
export function sharedServers() {
  let stores: NatsStores;
  let count = 0;
  const opened: SharingServer[] = [];
  beforeAll(async () => {
    if (testNats !== null) stores = await NatsStores.start();
  });
  afterAll(() => (testNats === null ? undefined : stores.close()));
  afterEach(async () => {
    for (const { server, presence, cut } of opened.splice(0)) {
      await server.end();
      await presence.close();
      await cut();
    }
  });

  /** @param name servers of one name share what they store @param id of this one */
  const serverOf = async (
    name: string,
    id: string,
    script: Script = () => say('ok'),
    keys: readonly ApiKey[] = [],
  ): Promise<SharingServer> => {
    const nc = await NatsStores.connect(stores.server);
    const presence = stores.presence(`${name}P`, id, nc);
    await presence.start();
    const shared = {
      files: { records: stores.records(`${name}F`, {}, nc), contents: stores.contents(`${name}C`, {}, nc) },
      batches: stores.records(`${name}B`, {}, nc),
      responses: stores.records(`${name}R`, {}, nc),
      presence,
    };
    const server = storingServer(script, { stores: shared, keys });
    const one = { server, presence, cut: () => nc.close() };
    opened.push(one);
    return one;
  };
  return { serverOf, newName: () => `S${count++}`, stores: () => stores };
}
