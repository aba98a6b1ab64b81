import type { TowerInfo, TowerPicture } from '../callbacks/tower-messages.js';
import type { TowerWorkerData } from '../engine/tower/tower-worker.js';
import { towerWorkerScript } from '../engine/tower/worker-script.js';
import { whyUnseen } from '../models/towers/picture-places.js';
import { ItemsHost, type ItemsHostOptions } from './batch/items-host.js';

export interface TowerHostOptions extends TowerWorkerData, ItemsHostOptions {
  /** Called after each batch. */
  onBatch?: (batch: SeenBatch) => void;
}

/** Size of a batch and duration of its forward. */
export interface SeenBatch {
  pictures: number;
  patches: number;
  forwardMs: number;
}

/**
 * The part of a model that sees, in a worker of its own: pictures of many requests are computed together, and the loop of the text model
 * shares only processors with it.
 */
export class TowerHost extends ItemsHost<TowerPicture, TowerInfo> {
  constructor(options: TowerHostOptions) {
    const { enginePath, params, onBatch } = options;
    super(options, {
      subject: 'The tower',
      script: towerWorkerScript(),
      data: () => ({ enginePath, params }),
      sizeOf: ({ grid }) => grid.rows * grid.columns,
      limitsOf: ({ limits }) => ({ maxNumTokens: limits.maxPatches, maxNumSequences: limits.maxPictures }),
      whyInvalid,
      onBatch: (pictures, patches, forwardMs) => onBatch?.({ pictures, patches, forwardMs }),
    });
  }

  /** Computes the rows of pictures for the prompt of their model, [rows x rowWidth] each; see ItemsHost.compute. */
  see(pictures: readonly TowerPicture[], signal?: AbortSignal): Promise<Float32Array[]> {
    return this.compute(pictures, { signal });
  }
}

/** Why a picture would make the executor refuse its whole batch; null: all are valid. */
function whyInvalid(pictures: readonly TowerPicture[], { config, limits }: TowerInfo): string | null {
  for (const { patches, grid } of pictures) {
    const wrong = whyUnseen(config, grid);
    if (wrong !== null) return wrong;
    const count = grid.rows * grid.columns;
    if (count > limits.maxPatches)
      return `A picture has ${count} patches; up to ${limits.maxPatches} are taken.`;
    if (patches.length !== count * config.patchWidth)
      return `A picture of ${grid.rows} x ${grid.columns} patches has ${patches.length} numbers; ${count * config.patchWidth} are expected.`;
  }
  return null;
}
