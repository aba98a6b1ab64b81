/** What the buckets of records that gateways share are for. */
export const SHARED_BUCKETS = ['FILES', 'BATCHES', 'RESPONSES', 'QUOTAS', 'MODELS', 'GATEWAYS'] as const;

/**
 * Names that gateways and workers agree on. PREFIX is the same for all of a deployment, MODEL a model's name with
 * other characters than letters, digits, - and _ replaced, POOL the fingerprint of workers that give equal bits.
 *
 *   PREFIX.work.MODEL.POOL       requests, in the stream PREFIX_WORK; the consumer MODEL-POOL is shared by its workers
 *   PREFIX.gateway.GATEWAY       all that workers send to one gateway: tokens, ends, what they hold
 *   PREFIX.worker.WORKER         all that gateways send to one worker, or ask it: requests, stops, its files, whether it is there
 *   PREFIX.cache.WORKER          changes of a worker's cache, for all gateways
 *   PREFIX.beat                  what workers report to all gateways about themselves, again and again
 *   PREFIX.loading               what workers report to all gateways until they take requests
 *   PREFIX.wanted.MODEL          gateways want a model that no worker has: a worker that could load it receives this
 *   PREFIX.hello                 a gateway is new, and asks for the beats of all workers at once
 *   PREFIX.content.ID            what clients store for all gateways, piece by piece, in the stream PREFIX_CONTENTS
 *
 * The buckets of SHARED_BUCKETS are PREFIX_FILES and so on, and their streams KV_PREFIX_FILES.
 */
export class QueueNames {
  readonly #prefix: string;

  /** @param prefix one or more words with dots between them */
  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  get stream(): string {
    return this.shared('WORK');
  }

  /** Streams of what gateways share. */
  get sharedStreams(): string[] {
    return [...SHARED_BUCKETS.map((what) => `KV_${this.shared(what)}`), this.shared('CONTENTS')];
  }

  /** Name of a bucket of records, or of another stream, that gateways share. */
  shared(what: (typeof SHARED_BUCKETS)[number] | 'CONTENTS' | 'WORK'): string {
    return `${this.#prefix.replaceAll('.', '_').toUpperCase()}_${what}`;
  }

  /** Prefix of the subjects of what clients store. */
  get content(): string {
    return `${this.#prefix}.content`;
  }

  /** Subjects of the stream. */
  get allWork(): string {
    return `${this.#prefix}.work.>`;
  }

  get beat(): string {
    return `${this.#prefix}.beat`;
  }

  get loading(): string {
    return `${this.#prefix}.loading`;
  }

  wanted(model: string): string {
    return `${this.#prefix}.wanted.${subjectWord(model)}`;
  }

  get hello(): string {
    return `${this.#prefix}.hello`;
  }

  work(pool: PoolName): string {
    return `${this.#prefix}.work.${subjectWord(pool.model)}.${pool.fingerprint}`;
  }

  /** Name of the durable consumer of a pool. */
  consumer(pool: PoolName): string {
    return `${subjectWord(pool.model)}-${pool.fingerprint}`;
  }

  gateway(id: string): string {
    return `${this.#prefix}.gateway.${id}`;
  }

  /** @param id '*': of all workers */
  cache(id: string): string {
    return `${this.#prefix}.cache.${id}`;
  }

  worker(id: string): string {
    return `${this.#prefix}.worker.${id}`;
  }
}

/** Workers that give equal bits to equal requests for a model. */
export interface PoolName {
  model: string;
  /** Letters and digits. */
  fingerprint: string;
}

/**
 * Characters of a model's name that are kept in subjects: the name is only for readers, the fingerprint
 * distinguishes pools.
 */
const MAX_CHARACTERS = 64;

function subjectWord(model: string): string {
  return model.slice(0, MAX_CHARACTERS).replaceAll(/[^\w-]/g, '_') || '_';
}
