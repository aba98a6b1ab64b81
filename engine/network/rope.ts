// The RoPE scalings (to be filled): see RopeConfig in models/model-config.ts.
export interface RopeFrequencies {
  /** [rotaryDim / 2], computed in float32 as the reference does. */
  inverseFrequencies: Float32Array;
  /** Factor on cos and sin. */
  scale: number;
}
