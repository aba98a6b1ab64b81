/** Numeric type of weights that an engine is built in: int8 and int4 in groups of 32 with their own scales. */
export type WeightPrecision = 'f32' | 'bf16' | 'int8' | 'int4';
/** GGML's types that are never built, only taken as a checkpoint has them. */
export type KeptPrecision = 'q4_k' | 'q5_k' | 'q6_k' | 'q5_0' | 'q5_1' | 'iq4_nl' | 'iq4_xs' | 'mxfp4';
/** Numeric type of one tensor of an engine. */
export type TensorPrecision = WeightPrecision | KeptPrecision;
/** Precision of an engine's weights; stored: each matrix has the numbers that the checkpoint stores. */
export type EnginePrecision = WeightPrecision | 'stored';
/** Numeric type of the embedding and of the output layer, which four bits would harm most. */
export type OutputPrecision = Exclude<EnginePrecision, 'int4'>;
