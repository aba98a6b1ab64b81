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

/** Parameters of a load: a configuration and files in place of the repository's, as the protocol has them. */
export interface LoadParameters {
  /** A whole configuration, as JSON. */
  config?: string;
  /** Contents by path within the model's folder: `1/model.onnx`. */
  files?: ReadonlyMap<string, Uint8Array>;
  /**
   * Values for `parameters` of the configuration, which make an endpoint of their own in addition to the
   * model's. Source: the AMD Inference Server's modelLoad.
   */
  values?: Readonly<Record<string, string | number | boolean>>;
  /** false: one more instance for the endpoint that has these values already. */
  share?: boolean;
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
  /** A model answers by this name, or is being loaded. */
  holds(name: string): boolean;
  /** Every version of every model that answers, for statistics and metrics. */
  loaded(): readonly InferModel[];
  /** The index as it is known, without a look at the folders. */
  rows(): readonly IndexRow[];
  index(options: { readyOnly: boolean }): Promise<readonly IndexRow[]>;
  /**
   * Loads or reloads a model; where that fails, the running one stays. Resolves with the name under which
   * clients find it: the model's own, but for values of their own. @throws InferError with the reason
   */
  load(name: string, parameters?: LoadParameters): Promise<string>;
  /**
   * From now on no request finds the model; resolves once it has answered what it had. @throws InferError for an unknown name
   */
  unload(name: string, options?: { unloadDependents?: boolean }): Promise<void>;
}
