import type {
  InstanceCommand,
  InstanceInfo,
  InstanceMessage,
} from '../../../callbacks/infer/instance-messages.js';
import { type Backend, type InstanceSetup, instanceWorkerScript } from '../../../engine/backends/backend.js';
import type { InstanceWorkerData } from '../../../engine/backends/instance-worker.js';
import type { BatchDuties } from '../../../host/batch/batch-duties.js';
import type { BatchHost } from '../../../host/batch/batch-host.js';
import type { BatchHostOptions } from '../../../host/batch/batch-host-options.js';
import type { BatchInstance } from '../../../host/batch/batch-instance.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import type { OwnParameters } from '../../../models/repository/model-parameters.js';
import type { BatchedEntry } from './batched-entry.js';
import type { Batch } from './batched-former.js';

/** Batches that an instance may have: one that it runs and one that waits, so that it never waits for this thread. */
export const BATCHES_AHEAD = 2;
/**
 * A waiting batch saves the way to this thread and back, some tenths of a millisecond. Where the batches
 * before it take longer than this, it is taken back, and the batcher decides again.
 */
const RECALL_AFTER_MS = 5;
/** Requests that wait or run, where the configuration sets no limit. */
const MAX_ENTRIES = 65_536;

export type ModelHost = BatchHost<BatchedEntry, Batch, InstanceInfo, InstanceMessage, InstanceCommand>;
export type ModelDuties = BatchDuties<BatchedEntry, Batch, InstanceInfo, InstanceMessage, InstanceCommand>;
export type ModelInstance = BatchInstance<Batch, InstanceInfo, InstanceMessage, InstanceCommand>;

export interface HostedModel {
  backend: Backend;
  files: InstanceSetup['files'];
  own: OwnParameters;
  /** The configuration that a worker starts with, which changes with the instances. */
  config: () => ModelConfig;
  nameOf: (instance: number) => string;
  numInstances: number;
  /** Batches of sequences are formed when those before them are done, and one that needs a turn when it has it: none is sent ahead of a busy instance. */
  isBound: boolean;
  onError: (error: Error) => void;
}

/** How a batch host runs a model's instances. */
export function hostOptions(model: HostedModel): BatchHostOptions {
  const { backend, files, own, config, nameOf, numInstances, isBound, onError } = model;
  const data = (i: number, claims: SharedArrayBuffer | null): InstanceWorkerData => ({
    entry: backend.entry.href,
    setup: { files, config: config(), instanceName: nameOf(i), maxStateBytes: own.maxStateBytes },
    claims,
  });
  return {
    subject: `The model '${config().name}'`,
    script: instanceWorkerScript(),
    data,
    ownerName: (i) => `Instance ${nameOf(i)}`,
    instances: numInstances,
    ...(isBound ? { batchesAhead: 1 } : { batchesAhead: BATCHES_AHEAD, recallAfterMs: RECALL_AFTER_MS }),
    maxEntries: MAX_ENTRIES,
    timeLimitMs: own.executeTimeoutMs,
    startLimitMs: own.initializeTimeoutMs,
    isolate: own.instanceKind === 'process',
    onError,
  };
}
