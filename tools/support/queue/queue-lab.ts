import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import * as jetstream from '@nats-io/jetstream';
import * as kv from '@nats-io/kv';
import * as nats from '@nats-io/transport-node';
import type { Routed } from '../../../cluster/gateway/cache-routes.js';
import { QueueGateway } from '../../../cluster/gateway/queue-gateway.js';
import { type Beat, modelKey } from '../../../cluster/nats/beat.js';
import {
  type BlocksMessage,
  type FramesMessage,
  type HoldMessage,
  type PictureMessage,
  type PieceFrame,
  packMessage,
  requestId,
  unpackMessage,
} from '../../../cluster/nats/messages.js';
import { QueueNames } from '../../../cluster/nats/names.js';
import { NatsGatewayPort } from '../../../cluster/nats/nats-gateway-port.js';
import { readRuns } from '../../../cluster/nats/token-runs.js';
import { WorkStream } from '../../../cluster/nats/work-stream.js';
import type { SilenceLimits } from '../../../cluster/nats/worker-roster.js';
import { NatsProcess } from './nats-process.js';

const cli = fileURLToPath(new URL('../../../dist/bin/skein.js', import.meta.url));

/** A worker's process, and the worker's own name. */
export interface LabWorker {
  id: string;
  child: ChildProcess;
  /** It only computes prompts. */
  isPrefill: boolean;
  /** All that it has written. */
  output: () => string;
}

export interface LabOptions {
  nats: string;
  /** Further arguments of nats-server. */
  natsArguments?: readonly string[];
  silence?: SilenceLimits;
  workerWaitMs?: number;
  allowsDifferentBits?: boolean;
  /** Whether its gateways send requests where they are cached; default 'any', as every test that plays with chance needs it. */
  routing?: 'cache' | 'any';
  /** See QueueGatewayOptions; default: no prompt is long. */
  maxLocalPrefillLength?: number;
  /** Environment of the workers. */
  environment?: NodeJS.ProcessEnv;
}

/** A piece as it passed by, and who sent it. */
export interface SeenFrame extends PieceFrame {
  worker: string;
}

/** Silence for machines that do a lot at once: a worker is asked soon, and given up late. */
const PATIENT: SilenceLimits = { probeAfterMs: 400, lostAfterMs: 20_000, untoldAfterMs: 5_000 };

/**
 * A NATS server, workers in processes of their own, and a gateway in this one, with an ear on all that passes between
 * them: so that a worker can be killed at the very token.
 */
export class QueueLab {
  readonly nats: NatsProcess;
  readonly names = new QueueNames('skein');
  readonly workers = new Set<LabWorker>();
  readonly warnings: string[] = [];
  /** What became of each request that was sent where it is cached. */
  readonly routed: Routed[] = [];
  readonly #options: LabOptions;
  readonly #beats = new Map<string, Beat>();
  readonly #onFrame = new Set<(frame: SeenFrame) => void>();
  readonly #onPicture = new Set<(message: PictureMessage) => void>();
  readonly #onHold = new Set<(message: HoldMessage) => void>();
  /** Requests whose prompts were computed by a prefill worker. */
  readonly prefilled: string[] = [];
  /** Worker that has said last that it has the request. */
  readonly #holders = new Map<string, string>();
  readonly #connections: nats.NatsConnection[] = [];
  #gateway: QueueGateway | null = null;
  #numGateways = 0;

  private constructor(options: LabOptions, server: NatsProcess) {
    this.#options = options;
    this.nats = server;
  }

  static async start(options: LabOptions): Promise<QueueLab> {
    const server = await NatsProcess.start(options.nats, options.natsArguments);
    const lab = new QueueLab(options, server);
    await lab.#listen();
    lab.#gateway = await lab.openGateway();
    return lab;
  }

  get gateway(): QueueGateway {
    return this.#gateway!;
  }

  async #connect(port = this.nats.port): Promise<nats.NatsConnection> {
    const nc = await nats.connect({
      servers: `127.0.0.1:${port}`,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 100,
      ignoreAuthErrorAbort: true,
    });
    this.#connections.push(nc);
    return nc;
  }

  async #listen(): Promise<void> {
    const nc = await this.#connect();
    nc.subscribe(this.names.gateway('*'), {
      callback: (_, message) => {
        const told = unpackMessage(message.data, 'frames', 'hold', 'picture');
        if (told.kind === 'picture') {
          for (const listener of [...this.#onPicture]) listener(told);
        } else if (told.kind === 'hold') {
          for (const [id] of told.held) this.#holders.set(id, told.worker);
          for (const listener of [...this.#onHold]) listener(told);
        } else {
          this.prefilled.push(...(told.prefilled ?? []).map(({ id }) => id));
          const gateway = message.subject.slice(this.names.gateway('').length);
          for (const frame of [...pieceFrames(gateway, told), ...told.frames]) {
            for (const listener of [...this.#onFrame]) listener({ ...frame, worker: told.worker });
          }
        }
      },
    });
    nc.subscribe(this.names.beat, {
      callback: (_, message) => {
        const beat = unpackMessage(message.data, 'beat');
        // Most have no card.
        this.#beats.set(beat.worker, { ...this.#beats.get(beat.worker), ...beat });
      },
    });
    await nc.flush();
  }

  /** @param maxLocalPrefillLength default: the lab's, as `routing` */
  async openGateway(
    maxLocalPrefillLength = this.#options.maxLocalPrefillLength,
    natsPort = this.nats.port,
    routing = this.#options.routing ?? 'any',
  ): Promise<QueueGateway> {
    const nc = await this.#connect(natsPort);
    const options = { storage: 'file', replicas: 1, maxMessages: 10_000 } as const;
    const stream = new WorkStream(nc, { nats, jetstream, kv }, this.names, options);
    await stream.ensure();
    const id = `lab${this.#numGateways++}`;
    const onWarning = (message: string) => this.warnings.push(message);
    const hearsCaches = routing === 'cache';
    const port = new NatsGatewayPort({ nc, stream, names: this.names, id, hearsCaches, onWarning });
    const onRouted = (routed: Routed) => this.routed.push(routed);
    const { silence = PATIENT, workerWaitMs = 30_000, allowsDifferentBits = false } = this.#options;
    const known = new Set<string>();
    const gateway: QueueGateway = new QueueGateway({
      id,
      port,
      silence,
      workerWaitMs,
      allowsDifferentBits,
      maxLocalPrefillLength: maxLocalPrefillLength ?? Number.POSITIVE_INFINITY,
      onBeat: ({ pool: { key } }) => {
        if (!known.has(key)) gateway.open(key, { maxQueueSize: 10_000, fairQueueing: false });
        known.add(key);
      },
      ...(hearsCaches ? { routing: { port, onRouted } } : {}),
      onLost: () => {},
      onWarning,
    });
    port.listen(gateway);
    return gateway;
  }

  /**
   * Starts a worker, and waits until it takes requests.
   * @param environment of this worker, in addition to the environment of all
   */
  async startWorker(
    args: readonly string[],
    url = this.nats.url,
    environment: NodeJS.ProcessEnv = {},
  ): Promise<LabWorker> {
    const child = spawn(process.execPath, [cli, 'work', '--nats', url, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...(this.#options.environment ?? process.env), ...environment },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream!.on('data', (bytes) => (output += bytes));
    const idIn = () => /worker (w\w+), equal/.exec(output)?.[1];
    await until('a worker to start', () => {
      if (child.exitCode !== null) throw new Error(`The worker has ended: ${output}`);
      return this.#beats.has(idIn() ?? '');
    });
    const isPrefill = this.#beats.get(idIn()!)?.isPrefill ?? false;
    const worker: LabWorker = { id: idIn()!, child, isPrefill, output: () => output };
    this.workers.add(worker);
    return worker;
  }

  /** Key of the only model. */
  get model(): string {
    return modelKey([...this.#beats.values()].find(({ model }) => model !== undefined)!.model!);
  }

  /** Number of requests that a worker has now: it is asked. */
  async held({ id }: LabWorker): Promise<number> {
    const answer = await this.#connections[0]!.request(
      this.names.worker(id),
      packMessage({ kind: 'probe' }),
      {
        timeout: 60_000,
      },
    );
    return unpackMessage(answer.data, 'beat').held;
  }

  /** Waits until no worker has a request. */
  async untilIdle(): Promise<void> {
    for (const worker of this.workers)
      await until('an idle worker', async () => (await this.held(worker)) === 0);
  }

  find(id: string): LabWorker | undefined {
    return [...this.workers].find((worker) => worker.id === id);
  }

  /** Calls the listener with each frame, until the returned function is called. */
  onFrame(listener: (frame: SeenFrame) => void): () => void {
    this.#onFrame.add(listener);
    return () => this.#onFrame.delete(listener);
  }

  /**
   * Calls the listener with each part of blocks that workers ask each other for, until the returned function
   * is called. Meanwhile a listener stands in for each worker, so that NATS does not report a dead one as
   * having no responders.
   */
  async onFetch(listener: (message: BlocksMessage) => void): Promise<() => void> {
    const [nc] = this.#connections;
    const heard = nc!.subscribe(this.names.worker('*'), {
      callback: (_, message) => {
        const told = unpackMessage(message.data, 'stop', 'probe', 'file', 'blocks', 'work', 'cacheAsk');
        if (told.kind === 'blocks') listener(told);
      },
    });
    await nc!.flush();
    return () => heard.unsubscribe();
  }

  /** Calls the listener with each part of a picture that workers ask gateways for, until the returned function is called. */
  onPicture(listener: (message: PictureMessage) => void): () => void {
    this.#onPicture.add(listener);
    return () => this.#onPicture.delete(listener);
  }

  onHold(listener: (message: HoldMessage) => void): () => void {
    this.#onHold.add(listener);
    return () => this.#onHold.delete(listener);
  }

  /** The worker that has said last that it has the request. */
  holderOf(id: string): LabWorker | undefined {
    return this.find(this.#holders.get(id) ?? '');
  }

  async kill(worker: LabWorker, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    this.workers.delete(worker);
    if (worker.child.exitCode !== null || worker.child.signalCode !== null) return;
    worker.child.kill(signal);
    await once(worker.child, 'exit');
  }

  /** For what the NATS server has. */
  manager(): Promise<jetstream.JetStreamManager> {
    return jetstream.jetstreamManager(this.#connections[0]!);
  }

  /** Number of requests in the stream. */
  async inStream(): Promise<number> {
    return (await (await this.manager()).streams.info(this.names.stream)).state.messages;
  }

  async close(): Promise<void> {
    this.#gateway?.close();
    await Promise.all([...this.workers].map((worker) => this.kill(worker)));
    await Promise.all(this.#connections.map((nc) => nc.close()));
    await this.nats.close();
  }
}

/** The runs of a message as the frames that they are short for. */
function pieceFrames(gateway: string, { runs }: FramesMessage): PieceFrame[] {
  return Array.from(readRuns(runs ?? new Int32Array(0)), ({ number, tokens, ...place }) => ({
    id: requestId(gateway, number),
    ...place,
    piece: { tokens, finishReason: null },
  }));
}

/** Waits until a condition holds, for five minutes at most. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + 300_000;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`Waited for ${what}, for five minutes.`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
