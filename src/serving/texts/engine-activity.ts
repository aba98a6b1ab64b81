import type { InstanceState } from '../../../host/batch/batch-instance.js';
import type { ModelActivity } from '../infer-model.js';
import type { EngineStatus } from '../model-state.js';
import type { RunningModel } from '../running-model.js';

export type EngineActivity = Omit<ModelActivity, 'lastInference'>;

/** What the engine of a model of texts does, as that of one instance. */
export function engineActivity({
  state,
  statistics,
}: Pick<RunningModel, 'state' | 'statistics'>): EngineActivity {
  const { waiting, running } = statistics.counts();
  const isBusy = running > 0;
  return { waiting, running, instances: [instanceState(state.status, isBusy)], restarts: state.restarts };
}

function instanceState(status: EngineStatus, isBusy: boolean): InstanceState {
  if (status === 'failed') return 'dead';
  if (status === 'restarting') return 'starting';
  return isBusy ? 'busy' : 'idle';
}
