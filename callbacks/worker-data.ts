import type { MessagePort } from 'node:worker_threads';
import type { SchedulerPolicy } from '../scheduler/tokens/types.js';
import type { ModelType, OptionalParams } from './gpt-manager-options.js';
import type { HostPostProcessors } from './host-post-processors.js';
import type { SeatData } from './ranks-options.js';

/** A worker's connections to its host, added to the data that its script gets. */
export interface WorkerWires {
  port: MessagePort;
  doorbell: SharedArrayBuffer;
  heartbeat: SharedArrayBuffer;
}

/** Start data that the GptManager gives its worker. */
export interface WorkerData extends WorkerWires {
  enginePath: string;
  modelType: ModelType;
  schedulerPolicy: SchedulerPolicy;
  maxBeamWidth: number;
  params: Omit<OptionalParams, 'executorModule' | 'logitsPostProcessorModule'>;
  executorModule: string | null;
  logitsPostProcessorModule: string | null;
  /** Post-processors that are functions of the host's thread; null: there are none. */
  hostPostProcessors: HostPostProcessors | null;
  callbackModule: string | null;
  terminateReqId: bigint | null;
  /** Requests left without a final response by a worker that died; only with callbacks in a module. */
  lost: { requestIds: bigint[]; reason: string } | null;
  /** Its place as rank 0 of a group; null: the engine is alone. */
  seat: SeatData | null;
  wants: { statsJson: boolean; stats: boolean; kvEvents: boolean };
}
