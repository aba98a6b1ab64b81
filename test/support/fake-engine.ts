import { fileURLToPath } from 'node:url';
import type { OptionalParams } from '../../callbacks/gpt-manager-options.js';

/** Options of a GptManager or host that runs the compiled fake executor in its worker. */
export function fakeEngine(
  engineOptions = '',
  params: OptionalParams = {},
): {
  enginePath: string;
  modelType: 'InflightFusedBatching';
  maxBeamWidth: number;
  schedulerPolicy: 'MAX_UTILIZATION';
  optionalParams: OptionalParams;
} {
  return {
    enginePath: `fake:?${engineOptions}`,
    modelType: 'InflightFusedBatching',
    maxBeamWidth: 1,
    schedulerPolicy: 'MAX_UTILIZATION',
    optionalParams: {
      executorModule: new URL('../../dist/engine/executors/fake/load-fake-executor.js', import.meta.url),
      tokensPerBlock: 8,
      maxNumSequences: 4,
      checkIntegrity: true,
      ...params,
    },
  };
}

/** Path of a module in test/support/modules. */
export function supportModule(name: string): string {
  return fileURLToPath(new URL(`./modules/${name}`, import.meta.url));
}
