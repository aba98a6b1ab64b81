import { graphProblem } from '../../scheduler/tensors/ensemble-graph.js';
import type { ModelConfig } from './model-config.js';
import type { FieldPath } from './written-config.js';

/** As `platform` of a configuration has it: the steps of `ensemble_scheduling` are the model. */
export const ENSEMBLE_PLATFORM = 'ensemble';

/** Steps of one ensemble: each is a request at every request. */
const MAX_STEPS = 256;
const MAX_INFLIGHT = 65_536;

/** Called with the field that a sentence is about. */
type Say = (path: FieldPath, sentence: string) => never;

/**
 * Holds the configuration of an ensemble against the rules that need no look at its members; of any other model, that it is none. The
 * sentences are Triton's. @param say throws
 */
export function checkEnsemble(config: ModelConfig, say: Say): void {
  const { name, platform, ensemble_scheduling: scheduling } = config;
  if (scheduling === undefined) {
    if (platform !== ENSEMBLE_PLATFORM) return;
    say(
      ['platform'],
      `ensemble scheduling must be set for ensemble ${name} whose platform is ${ENSEMBLE_PLATFORM}`,
    );
  }
  const path: FieldPath = ['ensemble_scheduling'];
  if (platform !== ENSEMBLE_PLATFORM) {
    say(
      path,
      `ensemble scheduling cannot be set for model '${name}' whose platform is not ${ENSEMBLE_PLATFORM}`,
    );
  }
  if (config.instance_group.length > 0)
    say(['instance_group'], `instance group should not be specified for ensemble '${name}'`);
  if (config.optimization !== undefined)
    say(['optimization'], `optimization should not be specified for ensemble '${name}'`);
  if ((config.model_warmup ?? []).length > 0)
    say(['model_warmup'], `model_warmup can not be specified for ensemble '${name}'`);
  const { step: steps = [], max_inflight_requests: most = 0 } = scheduling;
  if (steps.length > MAX_STEPS) {
    say([...path, 'step'], `ensemble '${name}' has ${steps.length} steps; at most ${MAX_STEPS} are taken`);
  }
  if (most > MAX_INFLIGHT) {
    say(
      [...path, 'max_inflight_requests'],
      `max_inflight_requests of ensemble '${name}' is ${most}; at most ${MAX_INFLIGHT} is taken`,
    );
  }
  const problem = graphProblem(config);
  if (problem !== null) say(problem.step === null ? path : [...path, 'step', problem.step], problem.sentence);
}
