import { retell, textOf } from '../../base/skein-error.js';
import type { MissingRanks } from '../../callbacks/ranks-options.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import type { AvailableMemory } from '../../kvcache/available-memory.js';
import { UsageError } from '../errors/user-errors.js';
import { withFlagNames } from '../options/flag-names.js';
import { leadingRank, openSecret } from '../serving/leading-rank.js';
import { loadModels } from '../serving/load-models.js';
import type { ModelOptions } from '../serving/model-options.js';
import { missingText } from '../serving/model-state.js';
import type { RunningModel } from '../serving/running-model.js';
import type { Config } from '../settings/config.js';
import { showBuildProgress } from './build-progress.js';
import { showLoadProgress } from './load-progress.js';
import { loadingOptions } from './loading-options.js';
import { showPullProgress } from './pull-progress.js';

/** What only some commands want of a load. `watch`: receives its progress, besides the terminal. */
export type MoreOfLoad = Pick<ModelOptions, 'cacheListener' | 'resumeRequests'> & {
  watch?: Pick<ModelOptions, 'onDownload' | 'onProgress'>;
  /** Memory for the KV cache of each; absent: what is free. */
  memory?: AvailableMemory | undefined;
};

/**
 * Loads the models of a configuration, in its order, with progress on stderr. A slower executor than the fastest is
 * reported there once. Errors of the engine use the user's names of options. @throws as loadModels.
 */
export function loadConfigured(
  config: Config,
  signal: AbortSignal,
  { watch, memory, ...more }: MoreOfLoad = {},
): Promise<RunningModel[]> {
  const { models } = config;
  const several = models.length > 1;
  const named = models.map((entry) => ({ entry, options: loadingOptions(entry, config) }));
  for (const { options } of named) checkRanksOptions(options);
  const progress = showLoadProgress(
    process.stderr,
    models.map(({ name }) => name),
  );
  const beside = <T>(show: (told: T) => void) => {
    return (told: T) => {
      progress.busy();
      show(told);
    };
  };
  // Later the server's log reports.
  let isLoading = true;
  const whileLoading = <T>(tell: (told: T) => void) => {
    return (told: T) => {
      if (isLoading) tell(told);
    };
  };
  return loadModels(
    named.map(({ entry, options }) => ({
      name: entry.name,
      memory,
      options: {
        ...options,
        ...more,
        onDownload: both(beside(showPullProgress(process.stderr)), watch?.onDownload),
        onProgress: both(beside(showBuildProgress(process.stderr)), watch?.onProgress),
        onDamaged: beside((message: string) => process.stderr.write(`skein: ${message}\n`)),
        onMissingRanks: whileLoading(tellMissing(several ? entry.name : null, beside)),
        signal,
      },
    })),
  )
    .then((loaded) => {
      const fallbacks = loaded.flatMap(({ info: { executorFallback } }) => executorFallback ?? []);
      for (const line of new Set(fallbacks)) process.stderr.write(`skein: ${line}\n`);
      for (const { info } of loaded) {
        for (const line of 'samplingLeftOut' in info
          ? [info.remarks, info.loweredContext ?? [], info.expertReading ?? [], info.samplingLeftOut].flat()
          : [])
          process.stderr.write(`skein: ${several ? `${info.name}: ` : ''}${line}\n`);
      }
      return loaded;
    })
    .catch((error: unknown) => {
      if (error instanceof Error) retell(error, withFlagNames(textOf(error)));
      throw error;
    })
    .finally(() => {
      isLoading = false;
      progress.end();
    });
}

function both<T>(first: (told: T) => void, second: ((told: T) => void) | undefined): (told: T) => void {
  return (told) => {
    first(told);
    second?.(told);
  };
}

type Beside = <T>(show: (told: T) => void) => (told: T) => void;

/** Reports on stderr which ranks a model waits for. @param name null: there is no other model */
function tellMissing(name: string | null, beside: Beside): (missing: MissingRanks) => void {
  let last = '';
  const tell = beside((text: string) => process.stderr.write(`skein: ${text}\n`));
  return (missing) => {
    if (missing.ranks.length === 0) return;
    const text = `${name === null ? '' : `the model ${name} is `}${missingText(missing)}`;
    if (text !== last) tell(text);
    last = text;
  };
}

/** @throws UsageError for invalid options of ranks; warns of an invalid secret */
function checkRanksOptions(options: ModelOptions): void {
  const { ranksSecretFile } = options;
  try {
    leadingRank(options);
  } catch (error) {
    if (!(error instanceof ParameterError)) throw error;
    retell(error, withFlagNames(textOf(error)));
    throw new UsageError(error.message);
  }
  const warning = ranksSecretFile === undefined ? null : openSecret(ranksSecretFile);
  if (warning !== null) process.stderr.write(`skein: ${warning}\n`);
}
