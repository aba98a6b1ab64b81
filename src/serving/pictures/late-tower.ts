import type { TowerParams } from '../../../engine/tower/load-tower.js';
import { TowerHost } from '../../../host/tower-host.js';

/** A model's tower, whose worker starts with the first picture. */
export class LateTower {
  readonly #enginePath: string;
  readonly #params: TowerParams;
  #host: TowerHost | null = null;

  constructor(enginePath: string, params: TowerParams) {
    this.#enginePath = enginePath;
    this.#params = params;
  }

  /** The tower, which is started where it is not there yet. */
  readonly open = (): TowerHost => {
    this.#host ??= new TowerHost({ enginePath: this.#enginePath, params: this.#params });
    return this.#host;
  };

  /** Ends the worker, if there is one. */
  async close(): Promise<void> {
    await this.#host?.close();
  }
}
