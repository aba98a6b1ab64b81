import { join } from 'node:path';
import { messageOf } from '../../base/error-text.js';
import { counted } from '../../base/sentences.js';
import { cardFingerprint, countFingerprints } from '../../cluster/gateway/card-fingerprint.js';
import type { QueueGateway } from '../../cluster/gateway/queue-gateway.js';
import { type ModelCard, modelKey, nameOfKey } from '../../cluster/nats/beat.js';
import type { RosterPool, RosterWorker } from '../../cluster/nats/roster-pool.js';
import type { QueueLimits } from '../../host/queue/queue-room.js';
import type { RunningModel } from '../serving/running-model.js';
import { learnedModel } from './learned-model.js';
import type { LoadingWorkers } from './loading-workers.js';
import { cardText } from './model-card.js';
import { fetchFiles, filesDigest } from './model-files.js';

export interface LearnedModelsOptions {
  gateway: QueueGateway;
  /** Folder with a folder of files for each model. */
  folder: string;
  limits: QueueLimits;
  /** Reads a part of a file of a worker. */
  readFile: (worker: string, pool: string, name: string, offset: number) => Promise<Uint8Array>;
  /** Serves a model from now on. @throws an Error where another one has its name */
  bring: (card: ModelCard, start: () => Promise<RunningModel<'generator'>>) => Promise<void>;
  /** Serves the model of this name no more, once its requests have ended. */
  takeAway: (name: string) => Promise<void>;
  onWarning: (message: string) => void;
  /**
   * Models are known by name: the start is over without any other, or the request that wants one would never
   * arrive.
   */
  knowsNames?: () => boolean;
  /** What workers report until they take requests. */
  loading: LoadingWorkers;
  /** Most models that it serves. */
  maxModels?: number;
  /**
   * Resolves when it knows the models that gateways have met before; never rejects. Absent: it does not ask.
   */
  firstLook?: Promise<unknown>;
  /** Called with each model that it serves from now on. */
  onServed?: () => void;
}

/** A model that the gateway serves. */
interface Served {
  key: string;
  card: ModelCard;
  folder: string;
  model: RunningModel<'generator'>;
}

/** A model that the gateway serves, for the store that keeps what it knows. */
export interface ServedCard extends Pick<Served, 'card' | 'folder'> {
  /** Workers that answer its requests. */
  numWorkers: number;
  /** Requests that no worker has. */
  numWaiting: number;
}

/** How a model that is to be served comes to the gateway. */
interface Found {
  card: ModelCard;
  key: string;
  /** Reads a part of one of its files. */
  read: (name: string, offset: number) => Promise<Uint8Array>;
  /** Worker or gateway that reported it, for errors. */
  from: string;
}

/** Milliseconds in which a gateway that starts discovers the present workers: each answers it at once. */
const FIRST_LOOK_MS = 1_000;
/** Most models that a gateway serves: each has a tokenizer of its own. */
export const MAX_MODELS = 64;
/** Milliseconds until a model that could not be learned is tried again. */
const RETRY_MS = 5_000;
const NO_WORKER = 'No worker has the model at present.';

/**
 * The models of a gateway: they come with their first worker, or because a gateway has met one before (KnownModels), and stay when the
 * last one goes, since another may come.
 * One whose workers make tokens of texts in another way takes the place of one of its name that has no workers left.
 */
export class LearnedModels {
  readonly #options: LearnedModelsOptions;
  readonly #most: number;
  readonly #served = new Map<string, Served>();
  /** Names that are being learned, or were not so long ago, without success. */
  readonly #busy = new Set<string>();
  /** Those among them that the gateway discovered at its start, and has not tried yet. */
  readonly #first = new Set<string>();
  /** Models are learned one after another: files and tokenizers of many at once would delay all requests. */
  #turn: Promise<unknown> = Promise.resolve();
  /** Keys of models whose workers have different engines. */
  readonly #mixed = new Set<string>();
  #hasWarnedFull = false;
  #isLooking = true;
  #hasServed = false;

  constructor(options: LearnedModelsOptions) {
    this.#options = options;
    this.#most = options.maxModels ?? MAX_MODELS;
    const heard = new Promise((resolve) => setTimeout(resolve, FIRST_LOOK_MS).unref());
    void Promise.all([heard, options.firstLook]).then(() => {
      this.#isLooking = false;
    });
  }

  /**
   * Names of models that the start of the gateway has not learned yet; null: the start is over. It is not
   * over before there is a model: clients would be refused what they ask for as unknown.
   */
  get starting(): readonly string[] | null {
    const isEmpty = !this.#hasServed && this.#options.knowsNames?.() !== true;
    const isStarting = this.#isLooking || this.#first.size > 0 || isEmpty;
    return isStarting ? [...this.#first] : null;
  }

  /** A worker has reported itself. */
  onBeat(worker: Pick<RosterWorker, 'id' | 'pool' | 'isLeaving'>): void {
    const { pool, isLeaving } = worker;
    // A worker that computes prompts for others answers no requests.
    if (isLeaving || pool.isPrefill) return;
    const { name } = pool.model;
    const served = this.#served.get(name);
    if (served?.key === pool.key) {
      this.#noteWorkers(served, pool.model);
      return;
    }
    if (this.#busy.has(name)) return;
    if (served !== undefined && this.#options.gateway.poolsOf(served.key).length > 0) return;
    // Its worker reports it again.
    if (this.#busy.size >= this.#most || (served === undefined && !this.#hasRoom())) return;
    const { readFile } = this.#options;
    const { fingerprint } = pool.name;
    this.#begin({
      card: pool.model,
      key: pool.key,
      read: (file, offset) => readFile(worker.id, fingerprint, file, offset),
      from: `of the worker ${worker.id}`,
    });
  }

  #begin(found: Found): void {
    const { name } = found.card;
    this.#busy.add(name);
    if (this.#isLooking) this.#first.add(name);
    const learned = this.#turn.then(() => this.#learn(found));
    this.#turn = learned;
    void this.#waitAfter(learned).finally(() => this.#busy.delete(name));
  }

  // What KnownModels asks.

  served(): ServedCard[] {
    const { gateway } = this.#options;
    return [...this.#served.values()].map(({ card, folder, key }) => ({
      ...{ card, folder, numWorkers: gateway.numWorkersOf(key), numWaiting: gateway.countsOf(key).waiting },
    }));
  }

  /** Serves a model that a gateway has met before: it displaces no other. */
  onKnown(card: ModelCard, read: Found['read']): void {
    if (this.#served.has(card.name) || this.#busy.has(card.name)) return;
    if (this.#served.size + this.#busy.size >= this.#most) return;
    this.#begin({ card, key: modelKey(card), read, from: 'that a gateway has met before' });
  }

  forget(name: string): void {
    const served = this.#served.get(name);
    if (served === undefined || this.#options.gateway.poolsOf(served.key).length > 0) return;
    this.#served.delete(name);
    this.#busy.add(name);
    this.#options
      .takeAway(name)
      .catch((error: unknown) =>
        this.#options.onWarning(`The model ${name} does not go: ${messageOf(error)}.`),
      )
      .finally(() => this.#busy.delete(name));
  }

  async #waitAfter(learned: Promise<boolean>): Promise<void> {
    if (!(await learned)) await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref());
  }

  #hasRoom(): boolean {
    if (this.#served.size < this.#most || this.#idle() !== undefined) return true;
    if (!this.#hasWarnedFull) {
      this.#hasWarnedFull = true;
      this.#options.onWarning(`A gateway serves ${this.#most} models at most: those beyond are not served.`);
    }
    return false;
  }

  /** Name of a model that no worker has and no request waits for. */
  #idle(): string | undefined {
    const { gateway } = this.#options;
    const isIdle = ({ key }: Served) => {
      const { running, waiting } = gateway.countsOf(key);
      return gateway.poolsOf(key).length === 0 && running + waiting === 0;
    };
    return [...this.#served].find(([, served]) => isIdle(served))?.[0];
  }

  /** A worker is gone. */
  onLost(): void {
    for (const served of this.#served.values()) this.#noteWorkers(served, null);
  }

  /** @param card of a worker that has reported itself; null: one is gone */
  #noteWorkers({ key, model: { state, info } }: Served, card: ModelCard | null): void {
    const pools = this.#options.gateway.poolsOf(key);
    const isThere = pools.length > 0;
    // With thousands of workers each beat comes here, and nearly all are alike.
    if (this.#mixed.has(key) || (card !== null && cardFingerprint(card) !== info.fingerprint))
      this.#noteMixed(key, pools);
    if (isThere && state.status !== 'ready') state.recover();
    if (!isThere && state.status === 'ready') state.leave(new Error(NO_WORKER));
  }

  /** Says once of a model, until its workers are alike again, that their answers are not the same. */
  #noteMixed(key: string, pools: readonly RosterPool[]): void {
    const counts = countFingerprints(pools);
    if (counts.size < 2) {
      this.#mixed.delete(key);
      return;
    }
    if (this.#mixed.has(key)) return;
    this.#mixed.add(key);
    const list = [...counts].map(([fingerprint, count]) => `${fingerprint} (${counted(count, 'worker')})`);
    this.#options.onWarning(
      `Workers of ${nameOfKey(key)} have different engines, and give different answers: ${list.join(', ')}. ` +
        'Their weights, precision, instruction set or version differ; system_fingerprint names the one that answered.',
    );
  }

  /** True: it is served now. Never rejects. */
  async #learn({ card, key, read, from }: Found): Promise<boolean> {
    const { gateway, folder, limits, bring, loading, onWarning } = this.#options;
    const { name, files } = card;
    try {
      if (card.text !== cardText(card)) throw new Error('what it reports of itself does not fit together');
      // What is in it decides the folder's name: no worker can name another one, or the files of another model.
      const own = join(folder, filesDigest(files));
      await fetchFiles(own, files, read);
      await this.#makeRoom(name);
      await bring(card, async () => {
        gateway.open(key, limits);
        const model = await learnedModel({ gateway, key, card, folder: own, loading });
        this.#served.set(name, { key, card, folder: own, model });
        this.#hasServed = true;
        if (gateway.poolsOf(key).length === 0) model.state.leave(new Error(NO_WORKER));
        return model;
      });
      this.#options.onServed?.();
      return true;
    } catch (error) {
      onWarning(`The model ${name} ${from} cannot be served: ${messageOf(error)}.`);
      return false;
    } finally {
      this.#first.delete(name);
    }
  }

  /**
   * Takes away the model that another one of its name replaces; else, where there are too many, one without
   * workers.
   */
  async #makeRoom(name: string): Promise<void> {
    const old = this.#served.has(name) ? name : this.#served.size < this.#most ? undefined : this.#idle();
    if (old !== undefined) {
      await this.#options.takeAway(old);
      this.#served.delete(old);
    } else if (this.#served.size >= this.#most)
      throw new Error(`the gateway has ${this.#most} models already`);
  }
}
