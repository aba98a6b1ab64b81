import { LiveModels } from '../../../src/serving/model-directory.js';
import type { ModelStatistics, RequestCounts } from '../../../src/serving/running-model.js';
import type { ServedModel } from '../../../src/serving/served-model.js';

/** A directory with these models. */
export function directoryOf(...models: readonly ServedModel[]): LiveModels {
  const directory = new LiveModels();
  for (const model of models) directory.add(model);
  return directory;
}

/** Statistics of an engine that counts what the test says. */
export class ToldStatistics<Counts extends RequestCounts, Step> implements ModelStatistics<Counts, Step> {
  readonly counts: () => Counts;
  readonly listeners = new Set<(step: Step) => void>();

  constructor(counts: () => Counts) {
    this.counts = counts;
  }

  onStats = (listener: (step: Step) => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** The engine has made a step. */
  tell(step: Step): void {
    for (const listener of this.listeners) listener(step);
  }
}
