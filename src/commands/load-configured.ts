import { retell, textOf } from '../../base/skein-error.js';
import type { Config } from '../config.js';
import { withFlagNames } from '../options/flag-names.js';
import { loadModels } from '../serving/load-models.js';
import type { RunningModel } from '../serving/running-model.js';
import { showBuildProgress } from './build-progress.js';
import { showLoadProgress } from './load-progress.js';
import { loadingOptions } from './loading-options.js';
import { showPullProgress } from './pull-progress.js';

/**
 * Loads the models of a configuration, in its order, with progress on stderr. A slower executor than the fastest is
 * reported there once. Errors of the engine use the user's names of options. @throws as loadModels.
 */
export function loadConfigured(config: Config, signal: AbortSignal): Promise<RunningModel[]> {
  const { models } = config;
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
  return loadModels(
    models.map((entry) => ({
      name: entry.name,
      options: {
        ...loadingOptions(entry, config),
        onDownload: beside(showPullProgress(process.stderr)),
        onProgress: beside(showBuildProgress(process.stderr)),
        onDamaged: beside((message: string) => process.stderr.write(`skein: ${message}\n`)),
        signal,
      },
    })),
  )
    .then((loaded) => {
      const fallbacks = loaded.flatMap(({ info: { executorFallback } }) => executorFallback ?? []);
      for (const line of new Set(fallbacks)) process.stderr.write(`skein: ${line}\n`);
      return loaded;
    })
    .catch((error: unknown) => {
      if (error instanceof Error) retell(error, withFlagNames(textOf(error)));
      throw error;
    })
    .finally(() => progress.end());
}
