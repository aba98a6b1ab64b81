import { join } from 'node:path';
import { messageOf } from '../../base/error-text.js';
import { counted } from '../../base/sentences.js';
import { cardFingerprint, countFingerprints } from '../../cluster/gateway/card-fingerprint.js';
import type { QueueGateway } from '../../cluster/gateway/queue-gateway.js';
import { type ModelCard, nameOfKey } from '../../cluster/nats/beat.js';
import type { RosterPool, RosterWorker } from '../../cluster/nats/roster-pool.js';
import type { QueueLimits } from '../../host/queue/queue-room.js';
import type { RunningModel } from '../serving/running-model.js';
import { learnedModel } from './learned-model.js';
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
  /** Most models that it serves. */
  maxModels?: number;
}

/** A model that the gateway serves. */
interface Served {
  key: string;
  model: RunningModel<'generator'>;
}

/** Milliseconds in which a gateway that starts hears of the workers that are there: each answers it at once. */
const FIRST_LOOK_MS = 1_000;
/** Most models that a gateway serves: each has a tokenizer of its own. */
const MAX_MODELS = 64;
/** Milliseconds until a model that could not be learned is tried again. */
const RETRY_MS = 5_000;

/**
 * The models of a gateway: they come with their first worker, and stay when the last one goes, since another may come.
 * One whose workers make tokens of texts in another way takes the place of one of its name that has no workers left.
 */
export class LearnedModels {
  readonly #options: LearnedModelsOptions;
  readonly #most: number;
  readonly #served = new Map<string, Served>();
  /** Names that are being learned, or were not so long ago, without success. */
  readonly #busy = new Set<string>();
  /** Those among them that the gateway has heard of at its start, and has not tried yet. */
  readonly #first = new Set<string>();
  /** Models are learned one after another: files and tokenizers of many at once would hold up everybody. */
  #turn: Promise<unknown> = Promise.resolve();
  /** Keys of models whose workers have different engines. */
  readonly #mixed = new Set<string>();
  #hasWarnedFull = false;
  #isLooking = true;
  #hasServed = false;

  constructor(options: LearnedModelsOptions) {
    this.#options = options;
    this.#most = options.maxModels ?? MAX_MODELS;
    setTimeout(() => {
      this.#isLooking = false;
    }, FIRST_LOOK_MS).unref();
  }

  /**
   * Names of models that the start of the gateway has not learned yet; null: the start is over. It is not before there is a model: the
   * gateway would tell clients that what they ask for does not exist.
   */
  get starting(): readonly string[] | null {
    const isStarting = this.#isLooking || this.#first.size > 0 || !this.#hasServed;
    return isStarting ? [...this.#first] : null;
  }

  /** A worker has told of itself. */
  onBeat(worker: Pick<RosterWorker, 'id' | 'pool' | 'isLeaving'>): void {
    const { pool, isLeaving } = worker;
    // A worker that computes prompts for others answers nobody.
    if (isLeaving || pool.isPrefill) return;
    const { name } = pool.model;
    const served = this.#served.get(name);
    if (served?.key === pool.key) {
      this.#noteWorkers(served, pool.model);
      return;
    }
    if (this.#busy.has(name)) return;
    if (served !== undefined && this.#options.gateway.poolsOf(served.key).length > 0) return;
    // Its worker tells of it again.
    if (this.#busy.size >= this.#most || (served === undefined && !this.#hasRoom())) return;
    this.#busy.add(name);
    if (this.#isLooking) this.#first.add(name);
    const learned = this.#turn.then(() => this.#learn(worker.id, pool));
    this.#turn = learned;
    void this.#waitAfter(learned).finally(() => this.#busy.delete(name));
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

  /** Name of a model that nobody has, and nobody waits for. */
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

  /** @param card of a worker that has told of itself; null: one is gone */
  #noteWorkers({ key, model: { state, info } }: Served, card: ModelCard | null): void {
    const pools = this.#options.gateway.poolsOf(key);
    const isThere = pools.length > 0;
    // With thousands of workers each beat comes here, and nearly all are alike.
    if (this.#mixed.has(key) || (card !== null && cardFingerprint(card) !== info.fingerprint))
      this.#noteMixed(key, pools);
    if (isThere && state.status !== 'ready') state.recover();
    if (!isThere && state.status === 'ready') state.leave(new Error('No worker has the model at present.'));
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
        'Their weights, precision, instruction set or version differ; system_fingerprint tells which one answered.',
    );
  }

  /** True: it is served now. Never rejects. */
  async #learn(worker: string, { name: { fingerprint }, key, model: card }: RosterPool): Promise<boolean> {
    const { gateway, folder, limits, readFile, bring, onWarning } = this.#options;
    const { name, files } = card;
    try {
      if (card.text !== cardText(card)) throw new Error('what it tells of itself does not fit together');
      // What is in it decides the folder's name: no worker can name another one, or the files of another model.
      const own = join(folder, filesDigest(files));
      await fetchFiles(own, files, (file, offset) => readFile(worker, fingerprint, file, offset));
      await this.#makeRoom(name);
      await bring(card, async () => {
        gateway.open(key, limits);
        const model = await learnedModel({ gateway, key, card, folder: own });
        this.#served.set(name, { key, model });
        this.#hasServed = true;
        return model;
      });
      return true;
    } catch (error) {
      onWarning(`The model ${name} of the worker ${worker} cannot be served: ${messageOf(error)}.`);
      return false;
    } finally {
      this.#first.delete(name);
    }
  }

  /** Takes away the model that another one of its name replaces; else, where there are too many, one that nobody has. */
  async #makeRoom(name: string): Promise<void> {
    const old = this.#served.has(name) ? name : this.#served.size < this.#most ? undefined : this.#idle();
    if (old !== undefined) {
      await this.#options.takeAway(old);
      this.#served.delete(old);
    } else if (this.#served.size >= this.#most)
      throw new Error(`the gateway has ${this.#most} models already`);
  }
}
