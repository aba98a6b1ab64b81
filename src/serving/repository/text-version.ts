import type { ObserveRequest } from '../request-observer.js';
import type { RunningModel } from '../running-model.js';
import {
  DEFAULT_MAX_LOG_PROBS,
  type ServedEncoder,
  type ServedGenerator,
  type ServedModel,
} from '../served-model.js';
import { EncoderInfer } from '../texts/encoder-infer.js';
import { engineActivity } from '../texts/engine-activity.js';
import { GeneratorInfer } from '../texts/generator-infer.js';
import type { ServedVersion } from './model-source.js';

/**
 * A model of texts that runs, as a version of the repository: clients of every protocol ask the same engine.
 * @param describe describes it to the text routes; null: there are none @param observe follows its requests
 * for tensors
 */
export function textVersion(
  name: string,
  version: string,
  loaded: RunningModel,
  describe: ((loaded: RunningModel) => ServedModel) | null,
  observe: ObserveRequest,
): ServedVersion {
  const described = describe === null ? null : describe(loaded);
  const life = { close: loaded.close.bind(loaded), isStuck: () => loaded.isStuck() };
  const activity = () => engineActivity(loaded);
  if (loaded.kind === 'encoder') {
    const model = new EncoderInfer(name, version, loaded.model, activity);
    loaded.statistics.onStats((batch) => model.noteBatch(batch));
    const served = described as ServedEncoder | null;
    return { model, served: served === null ? null : { ...served, ...model.counted }, ...life };
  }
  const served = described as ServedGenerator | null;
  const { model: generator, adapters } = loaded;
  const maxLogProbs = Math.min(served?.maxLogProbs ?? DEFAULT_MAX_LOG_PROBS, generator.vocabSize);
  const fingerprint = () => (loaded.engines === undefined ? loaded.info.fingerprint : null);
  const observed = { observedName: served?.id ?? name, observe };
  const generating = { ...observed, model: generator, adapters, maxLogProbs, fingerprint };
  const model = new GeneratorInfer(name, version, generating, activity);
  loaded.statistics.onStats((stats) => model.noteIteration(stats));
  return { model, served, ...life };
}
