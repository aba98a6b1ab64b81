import * as jetstream from '@nats-io/jetstream';
import * as kv from '@nats-io/kv';
import * as nats from '@nats-io/transport-node';
import type { JetStoreOptions } from '../../../cluster/nats/jet-store.js';
import { NatsContents } from '../../../cluster/nats/nats-contents.js';
import { NatsPresence, SIGN_LIFE_MS } from '../../../cluster/nats/nats-presence.js';
import { NatsRecords } from '../../../cluster/nats/nats-records.js';
import { findNatsServer, NatsProcess } from './nats-process.js';

export const NATS_MODULES = { nats, jetstream, kv };

const OPTIONS: JetStoreOptions = { storage: 'file', replicas: 1, maxBytes: 2 ** 26, maxAgeMs: 3_600_000 };

/** A NATS server, and what servers keep in it together. */
export class NatsStores {
  readonly server: NatsProcess;
  readonly nc: nats.NatsConnection;

  private constructor(server: NatsProcess, nc: nats.NatsConnection) {
    this.server = server;
    this.nc = nc;
  }

  static async start(): Promise<NatsStores> {
    const server = await NatsProcess.start(findNatsServer()!);
    return new NatsStores(server, await NatsStores.connect(server));
  }

  static connect({ port }: NatsProcess): Promise<nats.NatsConnection> {
    const servers = `127.0.0.1:${port}`;
    return nats.connect({
      servers,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 100,
      ignoreAuthErrorAbort: true,
    });
  }

  records(bucket: string, more: Partial<JetStoreOptions> = {}, nc = this.nc): NatsRecords {
    return new NatsRecords(nc, NATS_MODULES, bucket, { ...OPTIONS, ...more });
  }

  contents(stream: string, more: Partial<JetStoreOptions> = {}, nc = this.nc): NatsContents {
    return new NatsContents(nc, NATS_MODULES, stream, stream.toLowerCase(), { ...OPTIONS, ...more });
  }

  presence(bucket: string, id: string, nc = this.nc): NatsPresence {
    return new NatsPresence(this.records(bucket, { storage: 'memory', maxAgeMs: SIGN_LIFE_MS }, nc), id);
  }

  async close(): Promise<void> {
    await this.nc.close();
    await this.server.close();
  }
}
