import type { QueueGateway } from '../../../cluster/gateway/queue-gateway.js';
import type { Beat, ModelCard } from '../../../cluster/nats/beat.js';
import type { CacheChange } from '../../../cluster/nats/cache-messages.js';
import type { GatewayPort, RoutingPort } from '../../../cluster/nats/gateway-port.js';
import {
  type PieceFrame,
  packMessage,
  unpackMessage,
  type WorkItem,
} from '../../../cluster/nats/messages.js';
import { RunWriter } from '../../../cluster/nats/token-runs.js';
import { promptHashes } from '../../../kvcache/block-hashes.js';

export interface FleetOptions {
  workers: number;
  /** Requests of the gateway that run at once, over all workers: other gateways' have the other places. */
  running: number;
  model: ModelCard;
  tellsCaches: boolean;
  /** Beats have the card each time, as those of workers of before. */
  wholeCards: boolean;
  /** The beginnings of prompts; every worker has some of them. */
  prefixes: readonly Int32Array[];
}

interface Running {
  item: WorkItem;
  tokens: number;
  produced: number;
}

interface Offered {
  item: WorkItem;
  isGone: boolean;
}

interface FleetWorker {
  id: string;
  /** Requests of this gateway that it has room for. */
  share: number;
  running: Running[];
  cacheNumber: number;
  hasRefused: boolean;
}

const PLACES = 8;
const MAX_BLOCKS = 10_000;
/** Beginnings that each worker has cached. */
const PREFIXES_EACH = 8;
/** Tokens of prompts of which no block is reported. */
const ONE_TOKEN = Int32Array.of(7);

/**
 * Workers as a gateway sees them, without engines and without a network: what they send is packed, and read by the gateway as it is read from
 * NATS. All of them are full, mostly with requests of other gateways.
 *
 *   offer, direct <-- gateway            a request ends -> its worker takes the next one that lies in the stream
 *   beats, frames, holds, caches -->
 */
export class FakeFleet implements GatewayPort, RoutingPort {
  readonly #options: FleetOptions;
  readonly #workers: FleetWorker[];
  readonly #places: number;
  /** Offers, the oldest first; those in front of #head are taken. */
  #stream: Offered[] = [];
  #head = 0;
  #numInStream = 0;
  #free: FleetWorker[] = [];
  #messages: (() => void)[] = [];
  /** Workers that have got requests, and have not reported so. */
  readonly #holders = new Set<FleetWorker>();
  numBeats = 0;
  /** Messages of all kinds. */
  numMessages = 0;
  readonly #byId = new Map<string, FleetWorker>();
  gateway: QueueGateway | null = null;

  constructor(options: FleetOptions) {
    this.#options = options;
    const { workers, running } = options;
    this.#places = Math.max(PLACES, Math.ceil(running / workers));
    this.#workers = Array.from({ length: workers }, (_, i) => ({
      id: `w${i}`,
      share: Math.floor(((i + 1) * running) / workers) - Math.floor((i * running) / workers),
      running: [],
      cacheNumber: 1,
      hasRefused: false,
    }));
    for (const worker of this.#workers) {
      this.#byId.set(worker.id, worker);
      for (let i = 0; i < worker.share; i++) this.#free.push(worker);
    }
  }

  get size(): number {
    return this.#workers.length;
  }

  /** Offers that no worker has taken. */
  get inStream(): number {
    return this.#numInStream;
  }

  // What the gateway asks.

  async offer(_: unknown, item: WorkItem) {
    packMessage(item);
    const offered = { item, isGone: false };
    this.#stream.push(offered);
    this.#numInStream += 1;
    return { withdraw: () => void this.#takeOut(offered) };
  }

  async direct(name: string, item: WorkItem) {
    packMessage(item);
    const worker = this.#byId.get(name)!;
    if (worker.running.length >= worker.share) {
      worker.hasRefused = true;
      return 'full' as const;
    }
    this.#take(worker, item);
    return 'taken' as const;
  }

  async askCache(name: string) {
    const at = Number(name.slice(1));
    const { prefixes } = this.#options;
    const own = Array.from({ length: PREFIXES_EACH }, (_, i) => prefixes[(at + 8 * i) % prefixes.length]!);
    return this.#change(
      name,
      0,
      own.flatMap((tokens) => this.#hashes(tokens)),
    );
  }

  stop(): void {}

  async probe(name: string) {
    return this.#beatOf(this.#byId.get(name)!, true);
  }

  // What workers say: it is prepared, and sent by `tell`.

  /** Gives requests that lie in the stream to workers with free places. */
  deal(): void {
    while (this.#free.length > 0 && this.#head < this.#stream.length) {
      const worker = this.#free.pop()!;
      if (worker.running.length >= worker.share) continue;
      while (this.#head < this.#stream.length) {
        const offered = this.#stream[this.#head]!;
        this.#head += 1;
        if (!this.#takeOut(offered)) continue;
        this.#take(worker, offered.item);
        break;
      }
    }
    if (this.#head < 100_000) return;
    this.#stream = this.#stream.slice(this.#head);
    this.#head = 0;
  }

  /** False: it is not in the stream any more. */
  #takeOut(offered: Offered): boolean {
    if (offered.isGone) return false;
    offered.isGone = true;
    this.#numInStream -= 1;
    return true;
  }

  #take(worker: FleetWorker, item: WorkItem): void {
    const { maxNewTokens } = item.request as unknown as { maxNewTokens: number };
    worker.running.push({ item, tokens: maxNewTokens, produced: 0 });
    this.#holders.add(worker);
  }

  #addHeld(worker: FleetWorker): void {
    const held = worker.running.map(({ item }): [string, number] => [item.id, item.attempt]);
    const bytes = packMessage({ kind: 'hold', worker: worker.id, held });
    this.#add(() => packMessage(this.gateway!.onHold(unpackMessage(bytes, 'hold'))));
  }

  #add(message: () => void): void {
    this.numMessages += 1;
    this.#messages.push(message);
  }

  #beatOf({ id, share, running, cacheNumber }: FleetWorker, isWhole: boolean): Beat {
    const { model, tellsCaches } = this.#options;
    return {
      ...{ kind: 'beat', worker: id, pool: 'pool' },
      ...(isWhole ? { model } : {}),
      ...{ places: this.#places, held: this.#places - share + running.length },
      ...{ maxBlocks: MAX_BLOCKS, usedBlocks: 10, isLeaving: false, isGone: false },
      ...(tellsCaches ? { cacheNumber } : {}),
    } as Beat;
  }

  /** One worker reports itself and the requests that it has. */
  beat(at: number): void {
    const worker = this.#workers[at]!;
    this.#addBeat(worker);
    if (worker.running.length > 0) this.#addHeld(worker);
  }

  /** It sends its beat only. */
  beatAlone(at: number): void {
    this.#addBeat(this.#workers[at]!);
  }

  #addBeat(worker: FleetWorker): void {
    const bytes = packMessage(this.#beatOf(worker, this.#options.wholeCards));
    this.numBeats += 1;
    this.#add(() => this.gateway!.onBeat(unpackMessage(bytes, 'beat')));
  }

  /** An iteration of one worker, with a token for each of its requests. */
  iterate(at: number): void {
    const worker = this.#workers[at]!;
    if (worker.running.length === 0) return;
    const { tellsCaches } = this.#options;
    const runs = new RunWriter();
    const frames: PieceFrame[] = [];
    for (const running of worker.running) {
      const { item, produced } = running;
      running.produced += 1;
      const { id, attempt } = item;
      if (produced === 0 && tellsCaches) this.#addCache(worker, item);
      if (running.produced < running.tokens) runs.add(item.number!, attempt, 0, produced, ONE_TOKEN);
      else {
        const piece = { tokens: ONE_TOKEN, finishReason: 'length' as const };
        frames.push({ id, attempt, sequence: 0, index: produced, piece });
        this.#free.push(worker);
      }
    }
    // The order of a worker's own: see FrameSender.
    const told = runs.isEmpty ? {} : { runs: runs.words };
    const bytes = packMessage({ kind: 'frames', worker: worker.id, frames, failures: [], ...told });
    this.#add(() => this.gateway!.onFrames(unpackMessage(bytes, 'frames')));
    if (frames.length === 0) return;
    worker.running = worker.running.filter(({ produced, tokens }) => produced < tokens);
    if (!worker.hasRefused) return;
    worker.hasRefused = false;
    this.#addBeat(worker);
  }

  /** A prompt has been computed: its own last blocks are new. */
  #addCache(worker: FleetWorker, { request }: WorkItem): void {
    const { promptTokens } = request as unknown as { promptTokens: Int32Array };
    const change = this.#change(worker.id, worker.cacheNumber, this.#hashes(promptTokens).slice(-4));
    worker.cacheNumber += 1;
    const bytes = packMessage(change);
    this.#add(() => this.gateway!.onCache(unpackMessage(bytes, 'cacheChange')));
  }

  #hashes(tokens: Int32Array): number[] {
    return promptHashes({ salt: 0n }, tokens, this.#options.model.engine.tokensPerBlock);
  }

  #change(worker: string, from: number, hashes: readonly number[]): CacheChange {
    const stored = Float64Array.from(hashes);
    const removed = new Float64Array(0);
    return { kind: 'cacheChange', worker, from, next: from + 1, isAnew: false, stored, removed };
  }

  /** Workers that have got a request report it. */
  holdNew(): void {
    for (const worker of this.#holders) this.#addHeld(worker);
    this.#holders.clear();
  }

  /** Number of messages that are to be sent. */
  get numPrepared(): number {
    return this.#messages.length;
  }

  /** Sends the gateway what is prepared. */
  tell(): void {
    const messages = this.#messages;
    this.#messages = [];
    for (const message of messages) message();
  }
}
