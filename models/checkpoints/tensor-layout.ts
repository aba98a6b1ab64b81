import type { ModelConfig } from '../model-config.js';
import type { TensorLocation } from './checkpoint.js';
import type { RawTensor } from './raw-tensor.js';

/** A tensor under the name that the network asks for, with the steps of its conversion beside rounding. */
export type NamedTensor = RawTensor & Pick<TensorLocation, 'interleavedHeads' | 'transposed' | 'addend'>;

/** Prefix of the tensors of a model with a head on it, which is left out: `bert.encoder.layer.0...` */
const ENCODER_PREFIX = /^(bert|roberta)\./;
const GPT2_PREFIX = /^transformer\./;
/** Matrices of GPT-2's layers, which its authors call Conv1D and store as [in, out]. */
const GPT2_TURNED = /\.(c_attn|c_proj|c_fc)\.weight$/;
/** Weights of Gemma's norms, which multiply by 1 + weight. */
const GEMMA_NORM = /norm\.weight$/;

/** Tensors of safetensors files under the network's names. GGUF files hold them converted already. */
export function namedTensors(
  tensors: readonly RawTensor[],
  { architecture, encoder }: ModelConfig,
): Map<string, NamedTensor> {
  const isGpt2 = architecture === 'gpt2';
  const isGemma = architecture.startsWith('gemma');
  const prefix = encoder ? ENCODER_PREFIX : isGpt2 ? GPT2_PREFIX : null;
  return new Map(
    tensors.map((tensor): [string, NamedTensor] => {
      const name = prefix === null ? tensor.name : tensor.name.replace(prefix, '');
      if (isGpt2 && GPT2_TURNED.test(name)) return [name, { ...tensor, transposed: true }];
      if (isGemma && GEMMA_NORM.test(name)) return [name, { ...tensor, addend: 1 }];
      return [name, tensor];
    }),
  );
}
