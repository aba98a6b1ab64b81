import type { ModelConfig } from '../model-config.js';
import type { ConfigFields } from './config-fields.js';
import type { ExpertFields } from './experts-config.js';

/** Fields of a ModelConfig that depend on the family; dimensions are read alike for all. */
type OfFamily = Pick<ModelConfig, 'rope' | 'slidingWindow'> & Partial<ModelConfig>;

/** Dimensions that were read before. */
export interface KnownDimensions {
  name: string;
  numLayers: number;
  headDim: number;
  maxPositions: number;
}

export interface DecoderFamily {
  /** Defaults of transformers' config class, where config.json does not say. headDim absent: hidden size / heads. */
  headDim?: number;
  tied?: boolean;
  /** Field of the activation and its default. */
  activation?: [field: string, fallback: string];
  /** Name of an activation for which the layers have numbers of their own: see xielu-numbers.ts. */
  ownActivation?: string;
  /** Field of the norms' epsilon and its default. */
  epsilon?: [field: string, fallback: number];
  /** Absent: layers have one MLP each. */
  experts?: ExpertFields;
  /** Where experts are of which `read` says whether there are any. */
  ownExperts?: ExpertFields;
  read(config: ConfigFields, dimensions: KnownDimensions): OfFamily;
}
