import type { ModelConfig } from '../../models/repository/model-config.js';
import type { InferModel } from './infer-model.js';

/** States of a version, as the index of the protocol's repository extension has them. */
export type VersionState = 'UNKNOWN' | 'READY' | 'UNAVAILABLE' | 'LOADING' | 'UNLOADING';

/** A row of the index: one version, or a model of which no version was ever loaded. */
export interface IndexRow {
  name: string;
  version?: string;
  state?: VersionState;
  /** Why it is not ready; '' or absent: nothing to say. */
  reason?: string;
}

/** Parameters of a load: a configuration and files in the place of the repository's, as the protocol has them. */
export interface LoadParameters {
  /** A whole configuration, as JSON. */
  config?: string;
  /** Contents by path within the model's folder: `1/model.onnx`. */
  files?: ReadonlyMap<string, Uint8Array>;
}

/** Every model that is served or may be: those of folders, and those of `--model`. */
export interface ModelRepository {
  /**
   * The model that answers. @param version '' : the latest that is ready.
   * @throws InferError notFound for a name or version that there is not, unavailable for one that is not ready
   */
  find(name: string, version: string): InferModel;
  /** Ready versions, lowest first. @throws InferError notFound for an unknown name */
  versions(name: string): readonly InferModel[];
  isReady(name: string, version: string): boolean;
  /** Every model that is loaded answers. */
  allReady(): boolean;
  config(name: string, version: string): ModelConfig;
  /** Every version of every model that is loaded, for statistics and metrics. */
  loaded(): readonly InferModel[];
  index(options: { readyOnly: boolean }): Promise<readonly IndexRow[]>;
  /** Loads or loads anew; a failed reload keeps what runs. @throws InferError with the reason */
  load(name: string, parameters?: LoadParameters): Promise<void>;
  /** Takes the model out of service; resolves once no request of it is left. */
  unload(name: string, options?: { unloadDependents?: boolean }): Promise<void>;
}
