import * as jetstream from '@nats-io/jetstream';
import * as nats from '@nats-io/transport-node';
import { QueueNames } from '../../../cluster/nats/names.js';
import { freePort } from '../../support/free-port.js';
import type { Fleet, Trouble } from './fleet.js';
import { NatsCluster } from './nats-cluster.js';
import { ProgramMember } from './program-member.js';
import { type EngineOptions, engineArguments, skein } from './skein-program.js';
import { SkewedClock } from './skewed-clock.js';
import { Wire } from './wire.js';

export interface QueueFleetOptions extends EngineOptions {
  /** Path of nats-server. */
  nats: string;
  natsServers: number;
  workers: number;
  /** Workers in addition to these that only compute prompts. */
  prefillWorkers: number;
  gateways: number;
}

/** A worker that is silent for so long counts as lost: soon, since faults are many and short. */
const SILENCE_SECONDS = 4;
/** Room for what clients store, which NATS sets aside at once. */
const MAX_FILES_BYTES = 64 << 20;
/** Longer than any fault here: what gets a 503 then is an error. */
const WAIT_SECONDS = 120;
/** Tokens of a prompt that go to prefill workers. */
const LONG_PROMPT_TOKENS = 32;
/** Milliseconds in which all that is left of requests goes away by itself. */
const SETTLE_MS = 30_000;

/** NATS, workers and gateways in processes of their own, and a wire from each to NATS. */
export class QueueFleet implements Fleet {
  readonly members: ProgramMember[] = [];
  readonly #options: QueueFleetOptions;
  readonly #cluster: NatsCluster;
  /** Where gateways listen that have not been asked to end. */
  readonly #open = new Map<string, string>();
  /** Where workers report how they are, by their names. */
  readonly #healthOf = new Map<string, string>();
  readonly #gone = new Set<string>();

  private constructor(options: QueueFleetOptions, cluster: NatsCluster) {
    this.#options = options;
    this.#cluster = cluster;
  }

  static async start(options: QueueFleetOptions): Promise<QueueFleet> {
    const fleet = new QueueFleet(options, await NatsCluster.start(options.nats, options.natsServers));
    try {
      const { workers, prefillWorkers, gateways } = options;
      for (let i = 0; i < workers + prefillWorkers; i += 1) await fleet.#addWorker(i, i >= workers);
      for (let i = 0; i < gateways; i += 1) await fleet.#addGateway(`gateway-${i}`);
      const own = [...fleet.members];
      fleet.members.push(...fleet.#cluster.servers);
      // One after the other: the first one makes the engine, and the first to reach NATS makes the stream.
      await own[0]!.start();
      await Promise.all(own.slice(1).map((member) => member.start()));
      return fleet;
    } catch (error) {
      await fleet.close();
      throw error;
    }
  }

  addresses(): readonly string[] {
    return [...this.#open.values()];
  }

  get numErasures(): number {
    return this.#cluster.numErasures;
  }

  excuse({ kind, status, isToRetry }: Trouble, address: string): string | null {
    if (kind === 'broken' && this.#gone.has(address)) return 'its gateway ended';
    return (status === 503 || status === 429) && isToRetry ? `${status} with Retry-After` : null;
  }

  async #addWorker(index: number, isPrefill: boolean): Promise<void> {
    const name = isPrefill ? `prefill-${index}` : `worker-${index}`;
    const wire = await Wire.open(this.#cluster.ports);
    const start = async () => {
      const port = await freePort();
      const health = `http://127.0.0.1:${port}/health`;
      this.#healthOf.set(name, health);
      const args = [
        ...engineArguments(this.#options),
        ...this.#queueArguments(wire),
        ...['--health-port', String(port)],
        ...(isPrefill ? ['--disaggregation-mode', 'prefill'] : []),
      ];
      return { ...skein('work', this.#options, args), ready: health };
    };
    this.members.push(new ProgramMember({ name, role: 'worker', wire, clock: new SkewedClock(), start }));
  }

  async #addGateway(name: string): Promise<void> {
    const wire = await Wire.open(this.#cluster.ports);
    const start = async () => {
      const port = await freePort();
      const address = `http://127.0.0.1:${port}`;
      const args = [
        ...this.#queueArguments(wire),
        ...['--port', String(port), '--worker-silence-seconds', String(SILENCE_SECONDS)],
        ...['--worker-wait-seconds', String(WAIT_SECONDS), '--max-files-bytes', String(MAX_FILES_BYTES)],
        ...['--max-local-prefill-length', String(LONG_PROMPT_TOKENS)],
      ];
      return {
        ...skein('gateway', this.#options, args),
        ready: `${address}/health`,
        onStarted: () => this.#open.set(name, address),
        onEnding: () => {
          if (this.#open.get(name) === address) this.#open.delete(name);
          this.#gone.add(address);
        },
      };
    };
    const clock = new SkewedClock();
    this.members.push(new ProgramMember({ name, role: 'gateway', wire, clock, start }));
  }

  #queueArguments(wire: Wire): string[] {
    const urls = wire.ports.map((port) => `nats://127.0.0.1:${port}`);
    return [
      ...urls.flatMap((url) => ['--nats', url]),
      ...['--nats-replicas', String(this.#options.natsServers)],
    ];
  }

  async leftovers(): Promise<string[]> {
    const end = performance.now() + SETTLE_MS;
    for (;;) {
      const left = [...(await this.#leftAtWorkers()), ...(await this.#leftInStream())];
      if (left.length === 0 || performance.now() > end) return left;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  async #leftAtWorkers(): Promise<string[]> {
    const left = [];
    for (const [name, url] of this.#healthOf) {
      const { requests } = await fetch(url)
        .then((response) => response.json() as Promise<{ requests: number }>)
        .catch(() => ({ requests: Number.NaN }));
      if (requests !== 0) left.push(`${name} has ${requests} requests`);
    }
    return left;
  }

  async #leftInStream(): Promise<string[]> {
    const nc = await nats.connect({ servers: this.#cluster.ports.map((port) => `127.0.0.1:${port}`) });
    try {
      const manager = await jetstream.jetstreamManager(nc);
      const { stream } = new QueueNames('skein');
      const { messages } = (await manager.streams.info(stream)).state;
      return messages === 0 ? [] : [`the stream has ${messages} requests`];
    } catch (error) {
      return [`the stream cannot be read: ${error}`];
    } finally {
      await nc.close();
    }
  }

  async close(): Promise<void> {
    const own = this.members.filter(({ role }) => role !== 'nats');
    await Promise.all(own.map((member) => member.end('SIGKILL')));
    for (const { wire, clock } of own) {
      wire?.close();
      clock?.close();
    }
    await this.#cluster.close();
  }
}
