import type { CloseOptions } from '../../../host/in-process-host.js';
import type { ModelConfig } from '../../../models/repository/model-config.js';
import type { InferModel, SequencePlace } from '../infer-model.js';
import type { LoadParameters } from '../model-repository.js';
import type { ServedModel } from '../served-model.js';

/** What a load asks for, of a version that runs: where its files are the same, it may become that by instances that come and go. */
export interface Adaptation {
  config: ModelConfig;
  /** Changes with the model's files; '': unknown. */
  filesStamp: string;
  /** Aborted when the model is no longer wanted. */
  signal: AbortSignal;
}

/** A version of a model that runs. */
export interface ServedVersion {
  readonly model: InferModel;
  /** The same model as the routes of texts and encoders know it; null: it takes tensors alone. */
  readonly served: ServedModel | null;
  /** Absent: it has no sequences. */
  readonly sequences?: SequencePlace | undefined;
  /** See Adaptation. Absent: each load that changes anything restarts it. */
  adapt?(to: Adaptation): Promise<boolean>;
  /** Takes no more requests, lets those that were taken end, and frees the model. */
  close(options?: CloseOptions): Promise<void>;
  /** It is in a native call that does not return: the process cannot end but by being killed. */
  isStuck(): boolean;
}

/** One load of a model, decided on and not begun. */
export interface LoadPlan {
  /** Loads of equal identity make equal models: there is nothing to reload. Null: unknown. */
  readonly identity: string | null;
  /** Versions that are to be served, lowest first; at least one. */
  readonly versions: readonly string[];
  /** Starts a version. @param running the same version as it runs, which is returned where it could be adapted @throws an Error whose message is one sentence about what is wrong */
  start(version: string, running?: ServedVersion): Promise<ServedVersion>;
}

/** A load as it comes to a source. */
export interface AskedLoad extends Pick<LoadParameters, 'config' | 'files'> {
  /** Values for `parameters` of the configuration. */
  values: Readonly<Record<string, string | number | boolean>>;
  /** Instances beyond those of the configuration. */
  addedInstances: number;
  /** Aborted when the model is no longer wanted: what is not running yet is given up. */
  signal: AbortSignal;
}

/** Where models of one name come from: a folder of a repository, or an entry of the command line. */
export interface ModelSource {
  /** Names of other models that have to be loaded before it. Absent: it needs none. Of what cannot be read nothing is known. */
  needs?(name: string, asked: Pick<AskedLoad, 'config'>): readonly string[];
  /** Looks at what there is now. @throws an Error whose message is one sentence about what is wrong */
  plan(name: string, asked: AskedLoad): Promise<LoadPlan>;
}
