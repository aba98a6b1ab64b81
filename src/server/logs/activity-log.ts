import type { IterationStats } from '../../../callbacks/gpt-manager-options.js';
import { followModels, type ModelDirectory } from '../../serving/model-directory.js';
import type { ServedGenerator, ServedModel } from '../../serving/served-model.js';
import type { ServerLog } from '../web/server-log.js';

/** Milliseconds between two lines of a busy model, as vLLM has them. */
const LINE_MS = 10_000;

/** Work of an engine since the line before. */
interface Work {
  iterations: number;
  promptTokens: number;
  generatedTokens: number;
}

const nothing = (): Work => ({ iterations: 0, promptTokens: 0, generatedTokens: 0 });

/**
 * Logs what a model did, every ten seconds while it does anything; there is no timer while it is idle.
 *
 *   iterations  ..|||||||||||||||||||||||||||..............||||||
 *   lines                   ^         ^         ^                ^     of the ten seconds before each
 *
 * The share of prompt tokens found in the cache is that since the model was loaded: most spans of ten seconds have few prompts.
 */
class ModelActivity {
  readonly #model: ServedGenerator;
  readonly #log: ServerLog;
  readonly #lineMs: number;
  #work = nothing();
  #queried = 0;
  #reused = 0;
  #sinceMs = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(model: ServedGenerator, log: ServerLog, lineMs: number) {
    this.#model = model;
    this.#log = log;
    this.#lineMs = lineMs;
  }

  note(stats: IterationStats): void {
    const work = this.#work;
    work.iterations++;
    work.promptTokens += stats.contextTokens;
    work.generatedTokens += stats.generatedTokens;
    this.#queried += stats.queriedTokens;
    this.#reused += stats.reusedTokens;
    if (this.#timer !== null) return;
    this.#sinceMs = performance.now();
    this.#timer = setInterval(() => this.#tell(), this.#lineMs).unref();
  }

  end(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #tell(): void {
    const work = this.#work;
    if (work.iterations === 0) {
      this.end();
      return;
    }
    const nowMs = performance.now();
    const seconds = (nowMs - this.#sinceMs) / 1000;
    this.#work = nothing();
    this.#sinceMs = nowMs;
    const { running, waiting, maxBlocks, usedBlocks } = this.#model.statistics.counts();
    this.#log.info(
      {
        model: this.#model.id,
        running,
        waiting,
        promptTokensPerSecond: tenths(work.promptTokens / seconds),
        generationTokensPerSecond: tenths(work.generatedTokens / seconds),
        kvCachePercent: tenths(maxBlocks === 0 ? 0 : (100 * usedBlocks) / maxBlocks),
        prefixHitPercent: tenths(this.#queried === 0 ? 0 : (100 * this.#reused) / this.#queried),
      },
      'engine',
    );
  }
}

/** Logs what each model that generates text does, while it does anything. */
export function logActivity(models: ModelDirectory, log: ServerLog, lineMs = LINE_MS): void {
  const leave = new Map<ServedModel, () => void>();
  followModels(models, ({ kind, model }) => {
    if (kind === 'removed') {
      leave.get(model)?.();
      leave.delete(model);
    }
    if (kind !== 'added' || model.kind !== 'generator') return;
    const activity = new ModelActivity(model, log, lineMs);
    const stop = model.statistics.onStats((stats) => activity.note(stats));
    leave.set(model, () => {
      stop();
      activity.end();
    });
  });
}

const tenths = (value: number) => Math.round(10 * value) / 10;
