import type { ModelDirectory } from '../../../serving/model-directory.js';
import { followModels } from '../../../serving/model-directory.js';
import type { RequestObserver } from '../../../serving/request-observer.js';
import type { ServedModel } from '../../../serving/served-model.js';
import { DesiredWorkers, type Targets } from './desired-workers.js';

/** Most requests without a first token whose waiting time is read: beyond them one more changes no decile. */
const MAX_AGES = 1_000;

/** What is watched of a model. */
interface Watched {
  desired: DesiredWorkers;
  /** When the requests came that have no token yet, the oldest first. */
  begun: Set<{ atMs: number }>;
}

/** What a model's times say of the number of its workers. */
export interface Signal {
  model: string;
  desired: number;
  ratios: ReturnType<DesiredWorkers['ratios']>;
}

/** Holds the times that clients of each model see to targets. */
export class TargetWatch {
  readonly #models: ModelDirectory;
  readonly #watched = new Map<string, Watched>();

  constructor(models: ModelDirectory, targets: Targets) {
    this.#models = models;
    followModels(models, ({ kind, model: { id } }) => {
      if (kind === 'added') this.#watched.set(id, { desired: new DesiredWorkers(targets), begun: new Set() });
      else if (kind === 'removed') this.#watched.delete(id);
    });
  }

  /** Follows a request that was just accepted, in addition to another observer. */
  observe(model: string, inner: RequestObserver): RequestObserver {
    const watched = this.#watched.get(model);
    if (watched === undefined) return inner;
    const { desired, begun } = watched;
    const request = { atMs: performance.now() };
    let lastMs = request.atMs;
    begun.add(request);
    return {
      ...inner,
      onTokens: (count) => {
        inner.onTokens(count);
        const nowMs = performance.now();
        if (begun.delete(request)) desired.noteFirst(nowMs - request.atMs, nowMs);
        else desired.noteBetween((nowMs - lastMs) / count, nowMs, count);
        lastMs = nowMs;
      },
      onEnd: (...end) => {
        inner.onEnd(...end);
        begun.delete(request);
      },
    };
  }

  /** As it is now. */
  signals(nowMs = performance.now()): Signal[] {
    return this.#models.list().flatMap((model) => {
      const watched = this.#watched.get(model.id);
      return watched === undefined ? [] : [signalOf(model, watched, nowMs)];
    });
  }
}

function signalOf(model: ServedModel, { desired, begun }: Watched, nowMs: number): Signal {
  const ages: number[] = [];
  for (const { atMs } of begun) {
    if (ages.length === MAX_AGES) break;
    ages.push(nowMs - atMs);
  }
  const { running, waiting } = model.statistics.counts();
  const workers = model.kind === 'generator' ? (model.statistics.workers?.().ready ?? 1) : 1;
  return {
    model: model.id,
    desired: desired.desired({ workers, running, waiting, ages }, nowMs),
    ratios: desired.ratios(ages, nowMs),
  };
}
