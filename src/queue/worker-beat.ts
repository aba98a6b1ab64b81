import { randomBytes } from 'node:crypto';
import type { Beat, ModelCard } from '../../cluster/nats/beat.js';
import type { PoolName } from '../../cluster/nats/names.js';
import type { InProcessHost } from '../../host/in-process-host.js';
import type { RunningModel } from '../serving/running-model.js';
import type { Config, ConfiguredModel } from '../settings/config.js';
import { blockLayout, modelCard, poolFingerprint } from './model-card.js';
import type { ModelFiles } from './model-files.js';

/** Prompts that a prefill worker has at once: one is computed, and the next one is there when it is done. */
const PREFILL_PLACES = 2;

/** A name that no other worker has. */
export function workerId(): string {
  return `w${randomBytes(6).toString('hex')}`;
}

/** What a worker is for gateways and other workers, from its start to its end. */
export interface WorkerIdentity {
  id: string;
  model: ModelCard;
  pool: PoolName;
  /** Layout of the blocks of its cache; null: they cannot be handed over. */
  layout: string | null;
  isPrefill: boolean;
  /** Requests that it can have at once. */
  places: number;
}

export function identityOf(
  id: string,
  from: { config: Config; entry: ConfiguredModel; loaded: RunningModel<'generator'>; files: ModelFiles },
): WorkerIdentity {
  const { config, entry, loaded, files } = from;
  const info = (loaded.model.engine as InProcessHost).info!;
  const own = { ...config, ...entry.options };
  const model = modelCard(entry, loaded, info, files, own.maxBeamWidth);
  const isPrefill = config.disaggregationMode === 'prefill';
  return {
    id,
    model,
    pool: { model: entry.name, fingerprint: poolFingerprint(model, entry, config, isPrefill) },
    layout: blockLayout(model, info, entry, config),
    isPrefill,
    places: isPrefill ? PREFILL_PLACES : info.maxNumSequences,
  };
}

/** What a worker has now. */
export interface WorkerState
  extends Pick<Beat, 'held' | 'maxBlocks' | 'usedBlocks' | 'isLeaving' | 'isGone'> {
  /** Number of the last change of its cache; null: it reports none. */
  cacheNumber: number | null;
}

/**
 * The message that a worker sends once a second, and when it has room again.
 * @param isWhole with the card of its model: on request, at its start, and at its end, which gateways of an
 * older version must not miss
 */
export function beatOf(
  { id, model, pool, layout, isPrefill, places }: WorkerIdentity,
  { held, maxBlocks, usedBlocks, cacheNumber, isLeaving, isGone }: WorkerState,
  isWhole: boolean,
): Beat {
  return {
    kind: 'beat',
    worker: id,
    pool: pool.fingerprint,
    ...(isWhole ? { model } : {}),
    ...{ places, held, maxBlocks, usedBlocks },
    ...(isPrefill ? { isPrefill } : {}),
    ...(layout === null ? {} : { layout }),
    ...(cacheNumber === null ? {} : { cacheNumber }),
    isLeaving,
    isGone,
  };
}
